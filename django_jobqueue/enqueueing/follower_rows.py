"""A handler with options as the follower of a job, and the row of such a follower."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django_jobqueue.domain import followers, unique_keys
from django_jobqueue.domain.followers import FOLLOWER_OPTIONS, Follower
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.retries import stored_form
from django_jobqueue.store.queue.new_job import NewJob

# Options that an entry has as they are, and all that a follower can have.
SAME: Final = (
    "queue",
    "priority",
    "max_attempts",
    "unique_until",
    "limit_key",
    "weight",
)
ALLOWED: Final = frozenset(
    (*SAME, *FOLLOWER_OPTIONS, "run_after", "expires_at", "expires_in", "tags")
    + ("timeout", "backoff", "metadata", "unique_key")
)

AS_JSON: Final[Mapping[str, Callable[[Any], Any]]] = {
    "expires_at": datetime.isoformat,
    "expires_in": timedelta.total_seconds,
    "timeout": timedelta.total_seconds,
    "backoff": stored_form,
    "tags": list,
    "metadata": dict,
}


def as_follower(job_type: str, options: Options) -> Follower:
    """The follower of this type that has these options.

    Raises InvalidArguments for options that only an enqueue can have."""
    given = {
        field.name: value
        for field in fields(options)
        if (value := getattr(options, field.name)) is not None and value != ()
    }
    for name in sorted(given.keys() - ALLOWED):
        raise InvalidArguments(
            f"names {job_type!r} with {name}, which a follower cannot have."
        )
    if options.unique_until not in (None, "finished", "started"):
        raise InvalidArguments(
            f"names {job_type!r} with unique_until={options.unique_until!r}; a "
            "follower's type can be declared so."
        )
    entry: dict[str, Any] = {name: given[name] for name in SAME if name in given}
    for name, as_json in AS_JSON.items():
        if name in given:
            entry[name] = as_json(given[name])
    if isinstance(options.run_after, timedelta):
        entry["delay"] = options.run_after.total_seconds()
    elif options.run_after is not None:
        entry["run_after"] = options.run_after.isoformat()
    if options.unique_key is not None:
        key = unique_keys.key_of_text(job_type, options.unique_key)
        entry["unique_key"] = str(key)
    if (own := followers.as_json(followers.followers_of(options))) is not None:
        entry["followers"] = own
    return followers.follower_of(job_type, entry)


def follower_job(
    follower: Follower,
    declaration: Declaration,
    *,
    enqueued_by: str,
    metadata: Mapping[str, Any] | None,
) -> NewJob:
    """The row of a follower of a job with this metadata, as the trigger inserts it; but
    immediate mode knows no unique keys."""
    entry = json.loads(follower.options)
    run_after, expires_at = entry.get("run_after"), entry.get("expires_at")
    delay, expires_in = entry.get("delay"), entry.get("expires_in")
    options = Options(
        **{name: entry[name] for name in SAME if name in entry},
        run_after=_moment(run_after) or _wait(delay),
        expires_at=_moment(expires_at),
        expires_in=_wait(expires_in),
        timeout=_wait(entry.get("timeout")),
        enqueued_by=enqueued_by,
        tags=tuple(entry.get("tags", ())),
        metadata={**(metadata or {}), **entry.get("metadata", {})},
    )
    new = options.new_job(declaration.name, declaration)
    named = {**json.loads(new.followers or "{}"), **entry.get("followers", {})}
    backoff = entry.get("backoff")
    return replace(
        new,
        backoff=None if backoff is None else json.dumps(backoff),
        followers=json.dumps(named) if named else None,
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _wait(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
