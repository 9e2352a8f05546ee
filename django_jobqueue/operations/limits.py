"""Override limits by key: of all keys, or of one."""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.key_limits import limit_name
from django_jobqueue.domain.per_key import limit_key_problem, share_problem
from django_jobqueue.domain.policy import NO_LIMIT, whole
from django_jobqueue.domain.rates import rate_override, rate_override_problem
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import Name, one_name
from django_jobqueue.store import limit_overrides
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.job_types import Change
from django_jobqueue.text.suggestions import did_you_mean

OVERRIDE_LIMIT: Final = "override limit"  # in the audit


@sync_only()
def override_limit(
    name: Name,
    concurrency: int | None,
    *,
    key: str | None = None,
    using: str | None = None,
    by: str = "",
) -> Change:
    """Override how many jobs of each key run at once, or of this ``key`` alone.

    ``name`` is the limit's, or a handler or job type that has it. ``concurrency`` is a
    number; 0 holds the key, or all keys: their jobs wait. -1 is unlimited. None clears
    the override. Running jobs go on. Workers obey from their next claim, without a
    restart.

    Returns the override before and after. Raises InvalidArguments.
    """
    if concurrency is not None and (problem := whole(NO_LIMIT)(concurrency)):
        raise InvalidArguments(f"concurrency {problem}")
    return _override(name, key, "concurrency", concurrency, using, by)


@sync_only()
def override_key_rate(
    name: Name,
    rate: str | None,
    *,
    key: str | None = None,
    using: str | None = None,
    by: str = "",
) -> Change:
    """Override how many jobs of each key start in any window, or of this ``key`` alone.

    ``name`` is the limit's, or a handler or job type that has it. ``rate`` is a string,
    such as "10/s", "100/m burst 3" or "unlimited". None clears the override. Workers
    obey from their next claim, without a restart.

    Returns the override before and after. Raises InvalidArguments.
    """
    if problem := rate_override_problem(rate):
        raise InvalidArguments(f"rate {problem}")
    return _override(name, key, "rate", rate_override(rate), using, by)


@sync_only()
def override_key_share(
    name: Name,
    share: int | None,
    *,
    key: str,
    using: str | None = None,
    by: str = "",
) -> Change:
    """Override how many jobs of this key start per turn, instead of one. None clears
    the override.

    ``name`` is the limit's, or a handler or job type that has it. Workers obey from
    their next claim, without a restart.

    Returns the override before and after. Raises InvalidArguments.
    """
    if share is not None and (problem := share_problem(share)):
        raise InvalidArguments(f"share {problem}")
    return _override(name, key, "share", share, using, by)


def _override(
    name: Name, key: str | None, what: str, value: Any, using: str | None, by: str
) -> Change:
    """Write it, of all keys or of one, and record it."""
    limit, db = _limit_name(name), DjangoDatabase(using)
    if (
        what != "rate"
        and value not in (None, 0, 1)
        and limit_overrides.is_strict(db, limit)
    ):
        so = ", and a share changes nothing."
        if what == "concurrency":
            so = ": concurrency can be no other number than 1, or 0, which holds them."
        raise InvalidArguments(
            f"The order of the limit {limit!r} is strict, so jobs of a key run one "
            f"after the other{so}"
        )
    if key is not None:
        if problem := limit_key_problem(key):
            raise InvalidArguments(f"key {problem}")
        change = limit_overrides.override_key(db, limit, key, what, value)
    elif what == "rate":
        change = limit_overrides.override_rate(db, limit, value)
    else:
        change = limit_overrides.override_limit(db, limit, value)
    if change is None:
        hint = did_you_mean(limit, limit_overrides.limit_names(db))
        raise InvalidArguments(f"There is no limit by key {limit!r}.{hint}")
    details = {"limit": limit}
    private = {} if key is None else {"key": key}  # made of arguments of jobs
    is_changed = change.before != change.after
    if is_changed:
        details[what] = " → ".join(
            "–" if value is None else str(value)
            for value in (change.before, change.after)
        )
    record(
        OVERRIDE_LIMIT,
        by,
        int(is_changed),
        details,
        private=private,
        using=using,
    )
    return change


def _limit_name(name: Name) -> str:
    """The name of the limit that this text names, or that this job type has."""
    text = one_name(name)
    declaration = registry.get(text)
    return text if declaration is None else limit_name(declaration) or text
