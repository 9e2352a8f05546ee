"""A job type's policy line by line: what is in force, and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from django_jobqueue.admin import display
from django_jobqueue.conf import conf
from django_jobqueue.models import JobType
from django_jobqueue.policy import attempts_in_force, limit_in_force
from django_jobqueue.states import ArchivedStatus, Delivery


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One line. ``name`` is the field of the override."""

    name: str
    label: Any
    code: str
    override: str
    effective: str
    note: str = ""


def rows_of(job_type: JobType) -> list[PolicyRow]:
    """Every line that operators can override."""
    return [
        _priority(job_type),
        _max_attempts(job_type),
        _timeout(job_type),
        _concurrency(job_type),
        _kept(job_type, "keep_succeeded_override", [ArchivedStatus.SUCCEEDED]),
        _kept(
            job_type,
            "keep_unsuccessful_override",
            [s for s in ArchivedStatus if s != ArchivedStatus.SUCCEEDED],
        ),
    ]


def effective_priority(job_type: JobType) -> int:
    """The priority that new jobs get."""
    override = job_type.priority_override
    return job_type.priority if override is None else override


def effective_max_attempts(job_type: JobType, own: int | None = None) -> int | None:
    """How many attempts a job of this type has; None is without end."""
    return attempts_in_force(
        job_type.delivery, own, job_type.max_attempts, job_type.max_attempts_override
    )


def effective_timeout(job_type: JobType) -> timedelta | None:
    """How long an attempt may run; None is without end."""
    override = job_type.timeout_override
    return (job_type.timeout if override is None else override) or None


def effective_concurrency(job_type: JobType) -> int | None:
    """How many may run at once; None is no limit."""
    return limit_in_force(job_type.concurrency, job_type.concurrency_override)


def limit_text(limit: int | None) -> str:
    """A limit on how many."""
    if limit is None:
        return _("no limit")
    return _("0 (paused)") if limit == 0 else str(limit)


def attempts_text(limit: int | None) -> str:
    """A number of attempts."""
    return _("without end") if limit is None else str(limit)


def _priority(job_type: JobType) -> PolicyRow:
    return PolicyRow(
        "priority_override",
        _("Priority"),
        str(job_type.priority),
        _or_nothing(job_type.priority_override, str),
        str(effective_priority(job_type)),
    )


def _max_attempts(job_type: JobType) -> PolicyRow:
    note = ""
    once = job_type.delivery == Delivery.AT_MOST_ONCE
    if once and job_type.max_attempts_override is not None:
        note = _("An at-most-once type has one attempt, whatever is written here.")
    return PolicyRow(
        "max_attempts_override",
        _("Max attempts"),
        attempts_text(job_type.max_attempts),
        _or_nothing(
            job_type.max_attempts_override,
            lambda value: attempts_text(limit_in_force(None, value)),
        ),
        attempts_text(effective_max_attempts(job_type)),
        note,
    )


def _timeout(job_type: JobType) -> PolicyRow:
    return PolicyRow(
        "timeout_override",
        _("Timeout"),
        _span(job_type.timeout),
        _or_nothing(job_type.timeout_override, lambda value: _span(value or None)),
        _span(effective_timeout(job_type)),
    )


def _concurrency(job_type: JobType) -> PolicyRow:
    return PolicyRow(
        "concurrency_override",
        _("Concurrency"),
        limit_text(job_type.concurrency),
        _or_nothing(
            job_type.concurrency_override,
            lambda value: limit_text(limit_in_force(None, value)),
        ),
        limit_text(effective_concurrency(job_type)),
    )


def _kept(job_type: JobType, name: str, statuses: list[ArchivedStatus]) -> PolicyRow:
    kept: timedelta | None = getattr(job_type, name)
    settings = ", ".join(_retention(status) for status in statuses)
    override = _or_nothing(kept, display.length)
    return PolicyRow(
        name,
        job_type._meta.get_field(name).verbose_name,  # type: ignore[union-attr]
        settings,
        override,
        settings if kept is None else override,
    )


def _retention(status: ArchivedStatus) -> str:
    seconds = conf.retention[status.value]
    kept = _("for ever")
    if seconds is not None:
        kept = display.length(timedelta(seconds=seconds))
    return f"{status.label} {kept}"


def _span(value: timedelta | None) -> str:
    return _("none") if value is None else display.length(value)


def _or_nothing(value: Any, text: Any) -> str:
    return display.NOTHING if value is None else str(text(value))
