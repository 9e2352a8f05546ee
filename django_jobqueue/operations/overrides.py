"""Override what the code says of a job type."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum
from typing import Any, Final

from django_jobqueue.conf import GREATEST
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.policy import LONGEST, NO_LIMIT, priority_problem
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import tell
from django_jobqueue.operations.checks import Name, must_exist, one_name
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.job_types import Change


class Same(Enum):
    """The value of an override that is left as it is."""

    SAME = "as it is"


SAME: Final = Same.SAME
Number = int | None | Same
Span = timedelta | None | Same


@sync_only()
def override(
    name: Name,
    *,
    priority: Number = SAME,
    max_attempts: Number = SAME,
    timeout: Span = SAME,
    concurrency: Number = SAME,
    keep_succeeded: Span = SAME,
    keep_unsuccessful: Span = SAME,
    using: str | None = None,
    by: str = "",
) -> dict[str, Change]:
    """Say something else than the code about this job type; None is the code again.

    ``name`` is that of the job type, or its handler.
    ``max_attempts`` of -1 is without end, ``concurrency`` of -1 no limit and of 0 none
    at all, a ``timeout`` of zero none. What is not given is left as it is, also while
    somebody else changes it. It holds for the next claims, everywhere, without a
    restart; ``priority`` for the next enqueues. Returns what it changed, by the names
    used here. Raises UnknownJobType, InvalidArguments.
    """
    given = {
        "priority": priority,
        "max_attempts": max_attempts,
        "timeout": timeout,
        "concurrency": concurrency,
        "keep_succeeded": keep_succeeded,
        "keep_unsuccessful": keep_unsuccessful,
    }
    said = {option: value for option, value in given.items() if value is not SAME}
    for option, value in said.items():
        if problem := override_problem(option, value):
            raise InvalidArguments(f"{option} {problem}")
    job_type, db = one_name(name), DjangoDatabase(using)
    changed = job_types.override(db, job_type, said)
    must_exist(db, [job_type], [] if changed is None else [job_type])
    changed = changed or {}
    details = {"job_type": job_type, "overrides": _texts(changed)}
    tell("override", by, len(changed), details)
    return changed


def override_problem(option: str, value: Any) -> str | None:
    """What is wrong with this override, in words that follow its name."""
    if value is None:
        return None
    match option:
        case "priority":
            return priority_problem(value)
        case "max_attempts":
            return _number_problem(value, 1, "without end")
        case "concurrency":
            return _number_problem(value, 0, "no limit")
    if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST:
        return None
    return f"must be a timedelta from 0 to {LONGEST.days:,} days, not {value!r}."


def _number_problem(value: Any, least: int, endless: str) -> str | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and (value == NO_LIMIT or least <= value <= GREATEST):
        return None
    return (
        f"must be a whole number from {least} to {GREATEST:,}, or {NO_LIMIT} for "
        f"{endless}, not {value!r}."
    )


def _texts(changed: dict[str, Change]) -> dict[str, str]:
    return {option: f"{c.before} → {c.after}" for option, c in changed.items()}
