"""A job type's policy line by line: the value in force, and where it comes from."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import TextChoices
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts import display
from django_jobqueue.conf import conf
from django_jobqueue.domain.job_options import OF_TYPE, OVERRIDES
from django_jobqueue.domain.policy import (
    UNSET,
    attempts_in_force,
    limit_in_force,
    time_in_force,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.states import ArchivedStatus, Delivery
from django_jobqueue.models import JobType
from django_jobqueue.retries import describe, from_stored_form
from django_jobqueue.text import numbers


class Source(TextChoices):
    """Where a value in force comes from."""

    CODE = "code", _("code")
    SETTING = "setting", _("setting")
    OVERRIDE = "override", _("override")


class PolicyRow(NamedTuple):
    """One line."""

    option: str
    code: str  # the value without the override
    override: str
    effective: str
    source: Source
    note: str = ""

    @property
    def label(self) -> Any:
        """The label of the option."""
        return label_of(self.option)

    @property
    def name(self) -> str:
        """The field of the override."""
        return field_of(self.option)

    @property
    def is_overridden(self) -> bool:
        """True if the override is in force."""
        return self.source is Source.OVERRIDE


def rows_of(job_type: JobType) -> list[PolicyRow]:
    """The lines of all options that operators can override."""
    return [_row(job_type, option) for option in OVERRIDES]


def overridden(job_type: JobType) -> list[str]:
    """The options of this job type that are overridden."""
    return [o for o in OVERRIDES if getattr(job_type, field_of(o)) is not None]


def field_of(option: str) -> str:
    """The field of an override."""
    return f"{option}_override"


def label_of(option: str) -> Any:
    """The label of the override's field."""
    field: Any = JobType._meta.get_field(field_of(option))
    return capfirst(field.verbose_name)


def override_text(option: str, value: Any) -> str:
    """The value of an override."""
    if value is None:
        return display.NOTHING
    if value in OVERRIDES[option].words:
        return str(OVERRIDES[option].words[value])
    if OVERRIDES[option].is_text:
        return display.visible(value)
    is_duration = OVERRIDES[option].is_duration
    return numbers.length(value) if is_duration else numbers.number(value)


def code_text(job_type: JobType, option: str) -> str:
    """The value that holds without an override."""
    if option in OF_TYPE:
        value = getattr(job_type, option)
        lifted = OVERRIDES[option].unlimited if value is None else value
        return override_text(option, lifted)
    if option == "keep_succeeded":
        return _retention(ArchivedStatus.SUCCEEDED)
    others = [s for s in ArchivedStatus if s != ArchivedStatus.SUCCEEDED]
    return ", ".join(map(_retention, others))


def effective_max_attempts(job_type: JobType, own: int | None = None) -> int | None:
    """How many attempts a job of this type has; None is unlimited."""
    return attempts_in_force(
        job_type.delivery, own, job_type.max_attempts, job_type.max_attempts_override
    )


def effective_timeout(
    job_type: JobType, own: timedelta | None = None
) -> timedelta | None:
    """How long an attempt at a job of this type may run; None is unlimited."""
    return time_in_force(own, job_type.timeout, job_type.timeout_override)


def effective_concurrency(job_type: JobType) -> int | None:
    """How many may run at once; None is unlimited."""
    return limit_in_force(job_type.concurrency, job_type.concurrency_override)


def backoff_text(stored: Any) -> str:
    """The waits that a job has for itself, in the words of a job type's."""
    try:
        text = describe(from_stored_form(stored))
    except ValueError:
        text = str(stored)  # written by plain SQL; it has no effect
    return display.visible(text[:200])


def retry_lines(job_type: JobType) -> list[str]:
    """The retry rules of a job type, one in each line."""
    rules = job_type.retry if isinstance(job_type.retry, list) else []
    return [_rule_text(rule) for rule in rules if isinstance(rule, dict)]


def _rule_text(rule: dict[str, Any]) -> str:
    parts = []
    if rule.get("max_attempts") is not None:
        text = gettext("max attempts %(count)s")
        parts.append(text % {"count": numbers.number(rule["max_attempts"])})
    if rule.get("backoff"):
        parts.append(gettext("backoff %(name)s") % {"name": rule["backoff"]})
    if not rule.get("retry"):
        parts = [gettext("not retried")]
    text = ", ".join(parts) or gettext("retried")
    return display.visible(f"{rule.get('exception')}: {text}")


def own_rows(job: Any) -> list[tuple[Any, Any]]:
    """The lines of a job that has a timeout or waits of its own."""
    rows: list[tuple[Any, Any]] = []
    if job.timeout is not None:
        rows.append((_("Timeout"), numbers.length(job.timeout)))
    if job.backoff is not None:
        rows.append((_("Backoff"), backoff_text(job.backoff)))
    return rows


def _row(job_type: JobType, option: str) -> PolicyRow:
    value = getattr(job_type, field_of(option))
    code, override = code_text(job_type, option), override_text(option, value)
    if value is None:
        return PolicyRow(option, code, override, code, _source(job_type, option))
    once = job_type.delivery == Delivery.AT_MOST_ONCE
    if option == "max_attempts" and once:
        note = gettext("An at-most-once type has one attempt, whatever you enter here.")
        return PolicyRow(option, code, override, code, Source.CODE, note)
    note = gettext("The override repeats the code's value.") if override == code else ""
    return PolicyRow(option, code, override, override, Source.OVERRIDE, note)


def _source(job_type: JobType, option: str) -> Source:
    """Retention is a setting; so is an option that the declaration leaves unset."""
    if option not in OF_TYPE:
        return Source.SETTING
    declaration = registry.get(job_type.name)
    declared = declaration and getattr(declaration.policy, option)
    return Source.SETTING if declared is UNSET else Source.CODE


def _retention(status: ArchivedStatus) -> str:
    seconds = conf.retention[status.value]
    length = gettext("forever")
    if seconds is not None:
        length = numbers.length(timedelta(seconds=seconds))
    return f"{status.label} {length}"
