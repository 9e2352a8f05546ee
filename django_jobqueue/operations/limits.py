"""Override limits by key: of all keys, or of one."""

from __future__ import annotations

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.key_limits import limit_name
from django_jobqueue.domain.per_key import limit_key_problem
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

    ``name`` is that of the limit, or a handler, or its job type, that has it.
    ``concurrency`` is a number; 0 holds the key, or all: its jobs wait. -1 is
    unlimited. None clears the override: the code decides again, or for a key the limit.
    No job that runs is stopped. Workers obey from their next claim, without a restart.

    Returns the override before and after. Raises InvalidArguments.
    """
    limit = _limit_name(name)
    if concurrency is not None and (problem := whole(NO_LIMIT)(concurrency)):
        raise InvalidArguments(f"concurrency {problem}")
    if key is not None and (problem := limit_key_problem(key)):
        raise InvalidArguments(f"key {problem}")
    db = DjangoDatabase(using)
    change = limit_overrides.override_limit(db, limit, key, concurrency)
    if change is None:
        hint = did_you_mean(limit, limit_overrides.limit_names(db))
        raise InvalidArguments(f"There is no limit by key {limit!r}.{hint}")
    count = int(change.before != change.after)
    text = " → ".join(
        "–" if v is None else str(v) for v in (change.before, change.after)
    )
    details = {"limit": limit, "key": key, "concurrency": text if count else None}
    given = {name: value for name, value in details.items() if value is not None}
    record("override limit", by, count, given, using=using)
    return change


@sync_only()
def override_key_rate(
    name: Name, rate: str | None, *, using: str | None = None, by: str = ""
) -> Change:
    """Override how many jobs of each key start in any window.

    ``name`` is that of the limit, or a handler, or its job type, that has it. ``rate``
    is a text, such as "10/s", "100/m burst 3" or "unlimited". None clears the override:
    the code decides again. Workers obey from their next claim, without a restart.

    Returns the override before and after. Raises InvalidArguments.
    """
    limit = _limit_name(name)
    if problem := rate_override_problem(rate):
        raise InvalidArguments(f"rate {problem}")
    db = DjangoDatabase(using)
    change = limit_overrides.override_rate(db, limit, rate_override(rate))
    if change is None:
        hint = did_you_mean(limit, limit_overrides.limit_names(db))
        raise InvalidArguments(f"There is no limit by key {limit!r}.{hint}")
    count = int(change.before != change.after)
    details = {"limit": limit}
    if count:
        details["rate"] = f"{change.before or '–'} → {change.after or '–'}"
    record("override limit", by, count, details, using=using)
    return change


def _limit_name(name: Name) -> str:
    """The name of the limit that this text names, or that this job type has."""
    text = one_name(name)
    declaration = registry.get(text)
    return text if declaration is None else limit_name(declaration) or text
