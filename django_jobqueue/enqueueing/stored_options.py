"""The options of jobs as JSON, as schedules and followers hold them; and the row of a
follower."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain import followers, unique_keys
from django_jobqueue.domain.followers import FOLLOWER_OPTIONS, Follower
from django_jobqueue.domain.job_options import OF_JOB
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.retries import from_stored_form, stored_form
from django_jobqueue.store.queue.new_job import NewJob

# What only an enqueue can have.
NOT_OF_FOLLOWERS: Final = frozenset(
    ("id", "using", "enqueued_by", "on_duplicate", "debounce", "debounce_max")
)


def as_stored(options: Options) -> dict[str, Any]:
    """The stated options, in values of JSON; ``from_stored`` reads them."""
    stated = {
        one.name: value
        for one in fields(options)
        if (value := getattr(options, one.name)) != one.default
    }
    return {
        name: _STORED[name](value) if name in _STORED else _plain(value)
        for name, value in stated.items()
    }


def from_stored(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``as_stored`` as ``Options.but`` takes them. Raises ValueError for a
    backoff that is none."""
    return {
        name: _READ[name](value) if name in _READ else value
        for name, value in stored.items()
    }


def as_follower(job_type: str, options: Options) -> Follower:
    """The follower of this type that has these options.

    Raises InvalidArguments for options that only an enqueue can have."""
    entry = as_stored(options)
    for name in sorted(entry.keys() & NOT_OF_FOLLOWERS):
        raise InvalidArguments(
            f"names {job_type!r} with {name}, which a follower cannot have."
        )
    if options.unique_until not in (None, "finished", "started"):
        raise InvalidArguments(
            f"names {job_type!r} with unique_until={options.unique_until!r}; a "
            "follower's type can be declared so."
        )
    if isinstance(options.run_after, timedelta):
        entry["delay"] = entry.pop("run_after")
    if options.unique_key is not None:
        key = unique_keys.key_of_text(job_type, options.unique_key)
        entry["unique_key"] = str(key)
    own = {name: entry.pop(name) for name in FOLLOWER_OPTIONS if name in entry}
    if own:
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
    given = {
        **{name: value for name, value in entry.items() if name in OF_JOB},
        "enqueued_by": enqueued_by,
        "metadata": {**(metadata or {}), **entry.get("metadata", {})},
    }
    given.pop("unique_key", None)
    if "delay" in entry:
        given["run_after"] = timedelta(seconds=entry["delay"])
    values = from_stored(given)
    options = Options(
        **{name: OF_JOB[name].normal(value) for name, value in values.items()}
    )
    new = options.new_job(declaration.name, declaration)
    named = {**json.loads(new.followers or "{}"), **entry.get("followers", {})}
    return replace(new, followers=json.dumps(named) if named else None)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def _read_moment(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _read_backoff(value: Any) -> Any:
    return from_stored_form(value) if isinstance(value, dict) else value


_STORED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "backoff": stored_form,
    **dict.fromkeys(FOLLOWER_OPTIONS, lambda named: [one.json for one in named]),
}
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "backoff": _read_backoff,
    **dict.fromkeys(("run_after", "expires_at"), _read_moment),
    **dict.fromkeys(FOLLOWER_OPTIONS, followers.from_json),
}
