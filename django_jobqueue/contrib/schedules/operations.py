"""Pause, run, override and make schedules."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.contrib.schedules import (
    due_schedules,
    firing_rows,
    schedule_rows,
)
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.due_schedules import DueSchedule
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import several
from django_jobqueue.domain.option_checks import FiringMetadata
from django_jobqueue.domain.policy import name_of
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import (
    ScheduleRule,
    default_time_zone,
    known_time_zone,
    next_firings,
    parse,
)
from django_jobqueue.domain.schedules import Overlap, ScheduleDeclaration
from django_jobqueue.domain.unique_keys import ScheduleKey
from django_jobqueue.enqueueing import by_name
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.enqueueing.scheduling import schedule_of
from django_jobqueue.enqueueing.stored_options import from_stored
from django_jobqueue.exceptions import DuplicateJob, InvalidArguments, UnknownSchedule
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import checked_data, must_exist
from django_jobqueue.store import find as store_find
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones
from django_jobqueue.text.suggestions import near_names


def preview(
    rule: str, time_zone: str | None = None, *, after: datetime, number: int = 10
) -> list[datetime]:
    """The next moments of a rule, in UTC. Raises InvalidArguments."""
    return next_firings(_parsed(rule, time_zone or default_time_zone()), after, number)


@sync_only()
def pause(
    names: str | list[str], *, reason: str = "", using: str | None = None, by: str = ""
) -> list[str]:
    """Stop these schedules from firing; return those that were not already paused, or
    have a new reason. Firings during the pause do not count as missed. Raises
    UnknownSchedule."""
    names, db = _names(names), DjangoDatabase(using)

    def pause_all() -> list[str]:
        _must_exist(db, names)
        return schedule_rows.pause(db, names, by, reason)

    changed = db.in_transaction(pause_all)
    record(
        "pause", by, len(changed), {"schedules": changed, "reason": reason}, using=using
    )
    return changed


@sync_only()
def resume(
    names: str | list[str], *, using: str | None = None, by: str = ""
) -> list[str]:
    """Let these schedules fire again, from their next moment on; return those that were
    paused. Raises UnknownSchedule."""
    names, db = _names(names), DjangoDatabase(using)

    def resume_all() -> list[str]:
        _must_exist(db, names)
        return schedule_rows.resume(db, names)

    changed = db.in_transaction(resume_all)
    record("resume", by, len(changed), {"schedules": changed}, using=using)
    return changed


@sync_only()
def run_now(name: str, *, using: str | None = None, by: str = "") -> Job:
    """Enqueue this schedule's job now; its next firing stays as it is.

    Raises UnknownSchedule; DuplicateJob if the schedule skips overlaps, and a job of it
    is not finished; InvalidArguments, and the errors of an enqueue.
    """
    db = DjangoDatabase(using)

    def enqueue() -> Job:
        one = due_schedules.find(db, name)
        if one is None:
            raise _unknown(db, name)
        options = {"enqueued_by": by or f"schedule {name}", **from_stored(one.options)}
        about = {"schedule": name, "fires_at": one.now.isoformat()}
        options["metadata"] = FiringMetadata(options.get("metadata", {}), **about)
        if one.skips_overlap:
            _skip_overlap(db, one, options)
        options["on_duplicate"] = "raise"  # whatever its firings do
        try:
            job = by_name.enqueue(one.job_type, one.data, using=using, **options)
        except (TypeError, ValueError) as error:  # options that were written in SQL
            raise InvalidArguments(str(error)) from None
        schedule_rows.add_manual_firing(db, name, one.now, job.id, by)
        return job

    job = db.in_transaction(enqueue)
    record("run schedule", by, 1, {"schedule": name, "id": str(job.id)}, using=using)
    return job


@sync_only()
def override(
    name: str, *, using: str | None = None, by: str = "", **values: Any
) -> None:
    """Override ``rule``, ``time_zone`` or ``data`` of a schedule that the code
    declares. None clears an override; omitted values stay as they are.

    Raises UnknownSchedule, InvalidArguments.
    """
    for option in values.keys() - set(schedule_rows.OVERRIDES):
        raise InvalidArguments(
            f"{option!r} of a schedule cannot be overridden, only rule, time_zone and "
            "data."
        )
    db = DjangoDatabase(using)

    def write() -> None:
        origin, job_type, _ = _locked(db, name)
        if origin != Origin.CODE:
            raise InvalidArguments(
                f"The schedule {name!r} was made by an operator: edit it instead."
            )
        one = due_schedules.find(db, name)
        assert one is not None
        zone, rule = values.get("time_zone"), values.get("rule")
        if zone is not None or rule is not None:
            parsed = _parsed(
                one.rule if rule is None else rule,
                one.time_zone if zone is None else zone,
            )
            if rule is not None:
                values["rule"] = parsed.text
        if values.get("data") is not None:
            checked_data(job_type, values["data"])
        schedule_rows.override(db, name, values)

    if values:
        db.in_transaction(write)
    record(
        "override schedule",
        by,
        1,
        {"schedule": name, "changed": sorted(values)},
        using=using,
    )


def check(
    name: str, job_type: object, *, rule: str, **values: Any
) -> ScheduleDeclaration:
    """The schedule that ``create`` would make of this; nothing is written. Raises
    InvalidArguments."""
    schedule = _checked(name, str(name_of(job_type)), {"rule": rule, **values})
    if schedule.ends_at is not None and schedule.ends_at <= timezones.now():
        raise InvalidArguments("ends is in the past: it would never fire.")
    return schedule


@sync_only()
def create(
    name: str,
    job_type: object,
    *,
    rule: str,
    using: str | None = None,
    by: str = "",
    **values: Any,
) -> None:
    """Make a schedule that no code declares, for this handler, task or name of a job
    type. ``values`` are ``time_zone``, ``data``, ``options`` and those of
    ``Handler.at``.

    Raises InvalidArguments, UnknownJobType.
    """
    schedule = check(name, job_type, rule=rule, **values)
    named = schedule.job_type
    db = DjangoDatabase(using)
    must_exist(db, [named], store_find.known_names(db))
    if not schedule_rows.create(db, schedule):
        raise InvalidArguments(f"There is a schedule {name!r} already.")
    record("create schedule", by, 1, {"schedule": name, "job_type": named}, using=using)


@sync_only()
def edit(name: str, *, using: str | None = None, by: str = "", **values: Any) -> None:
    """Change the ``rule`` of a schedule that an operator made, or other values of
    ``create``; omitted values stay as they are.

    Raises UnknownSchedule, InvalidArguments.
    """
    db = DjangoDatabase(using)

    def write() -> None:
        origin, job_type, _ = _locked(db, name)
        if origin == Origin.CODE:
            raise InvalidArguments(
                f"The schedule {name!r} is declared by the code: override its rule, "
                "time zone or data."
            )
        one = due_schedules.find(db, name)
        assert one is not None
        schedule_rows.edit(db, _checked(name, job_type, {**_values(one), **values}))

    db.in_transaction(write)
    record(
        "edit schedule",
        by,
        1,
        {"schedule": name, "changed": sorted(values)},
        using=using,
    )


@sync_only()
def delete(name: str, *, using: str | None = None, by: str = "") -> None:
    """Delete a schedule that no code declares, with its history. Its jobs stay. Raises
    UnknownSchedule, InvalidArguments."""
    db = DjangoDatabase(using)

    def write() -> None:
        _, job_type, _ = _locked(db, name)
        has_handler = registry.get(job_type) is not None
        if not schedule_rows.delete(db, name, has_handler=has_handler):
            raise InvalidArguments(
                f"The schedule {name!r} is declared by the code: pause it, or remove "
                "it there."
            )

    db.in_transaction(write)
    record("delete schedule", by, 1, {"schedule": name}, using=using)


def _checked(name: str, job_type: str, values: dict[str, Any]) -> ScheduleDeclaration:
    """A schedule that an operator makes. Raises InvalidArguments."""
    if not values.get("jitter"):
        values.pop("jitter", None)
    zone = values.pop("time_zone", None) or default_time_zone()
    rule = _parsed(values.pop("rule"), zone)
    data, options = values.pop("data", None) or {}, values.pop("options", None) or {}
    checked_data(job_type, data, weight=options.get("weight"))
    try:
        chosen = Options().but(from_stored(options))
        chosen.new_job(job_type, registry.get(job_type))
        schedule = schedule_of(job_type, rule, chosen, {"name": name, **values})
    except (ImproperlyConfigured, TypeError, ValueError) as error:
        problem = str(error).removeprefix(f"{job_type}.at(): ")
        raise InvalidArguments(problem) from None
    return replace(schedule, data=data, time_zone=zone)


def _values(one: DueSchedule) -> dict[str, Any]:
    """The values of a schedule as ``create`` takes them."""
    return {
        "rule": one.rule,
        "time_zone": one.time_zone,
        "data": one.data,
        "options": one.options,
        "missed": one.missed.missed.value,
        "missed_within": one.missed.within,
        "missed_most": one.missed.most,
        "overlap": (Overlap.SKIP if one.skips_overlap else Overlap.ALLOW).value,
        "jitter": one.jitter,
        "starts": one.period.starts_at,
        "ends": one.period.ends_at,
    }


def _parsed(rule: str, time_zone: str) -> ScheduleRule:
    if not isinstance(rule, str):
        raise InvalidArguments(
            f"rule: write it as a text, like '30 2 * * *' or 'every 5 minutes', not as "
            f"{type(rule).__name__}."
        )
    try:
        zone = known_time_zone(time_zone)
    except ValueError as error:
        raise InvalidArguments(f"time_zone: {error}") from None
    try:
        return parse(rule, zone)
    except ValueError as error:
        raise InvalidArguments(f"rule: {error}") from None


def _skip_overlap(
    db: DjangoDatabase, one: DueSchedule, options: dict[str, Any]
) -> None:
    """Let the job have the key of its schedule, unless it is unique anyway. Raises
    DuplicateJob."""
    _locked(db, one.name)  # the moment of a firing waits
    if firing_rows.has_unfinished_job(db, one.name):
        raise DuplicateJob(
            f"The schedule {one.name!r} skips overlaps, and its last job is not "
            "finished. Nothing was enqueued."
        )
    declaration = registry.get(one.job_type)
    rule, _ = job_types.stored_rules(db, one.job_type)
    if not (declaration.policy.unique if declaration else rule):
        options.setdefault("unique_key", ScheduleKey(one.name))


def _names(names: str | list[str]) -> list[str]:
    return [str(name) for name in several(names)]


def _locked(db: DjangoDatabase, name: str) -> tuple[str, str, bool]:
    held = schedule_rows.lock(db, name)
    if held is None:
        raise _unknown(db, name)
    return held


def _must_exist(db: DjangoDatabase, names: list[str]) -> None:
    known = set(schedule_rows.known_names(db))
    for name in names:
        if name not in known:
            raise _unknown(db, name)


def _unknown(db: DjangoDatabase, name: str) -> UnknownSchedule:
    return UnknownSchedule(name, near_names(name, schedule_rows.known_names(db)))
