"""Decides what an import makes of each schedule of another job queue, and does it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.contrib.importing import celery_beat, django_q2, foreign_tables
from django_jobqueue.contrib.importing.doubled_schedules import OurSchedules
from django_jobqueue.contrib.importing.foreign_schedule import (
    ForeignSchedule,
    NotImportable,
    make_unique,
)
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.contrib.schedules.schedule_rows import row_of
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.ids import id_of_text
from django_jobqueue.domain.registry import Declaration, handler_names, registry
from django_jobqueue.domain.schedules import ScheduleDeclaration
from django_jobqueue.enqueueing import by_name
from django_jobqueue.enqueueing.options import Options
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.text import timezones
from django_jobqueue.text.suggestions import did_you_mean


class Becomes(StrEnum):
    """The result of importing one schedule of theirs."""

    SCHEDULE = "schedule"
    PAUSED = "paused schedule"
    JOB = "job"
    THERE = "is here already"
    REFUSED = "refused"


# What a schedule of ours shares with theirs, if it was made of it.
SAME: Final = ("job_type", "rule", "time_zone", "data")
NEW: Final = (Becomes.SCHEDULE, Becomes.PAUSED, Becomes.JOB)


class Source(NamedTuple):
    """Another job queue whose tables are read."""

    label: str
    table: str
    rows: Callable[[Database], list[dict[str, Any]]]
    read: Callable[[list[dict[str, Any]], datetime], list[ForeignSchedule]]
    disable: Callable[[Database, Sequence[int]], int]


SOURCES: Final = {
    "celery-beat": Source(
        label="django-celery-beat",
        table=foreign_tables.CELERY_BEAT,
        rows=foreign_tables.celery_beat,
        read=celery_beat.read,
        disable=foreign_tables.disable_celery_beat,
    ),
    "django-q2": Source(
        label="Django-Q2",
        table=foreign_tables.DJANGO_Q2,
        rows=foreign_tables.django_q2,
        read=django_q2.read,
        disable=foreign_tables.disable_django_q2,
    ),
}


@dataclass(slots=True, kw_only=True)
class PlannedImport:
    """The plan for one schedule of theirs."""

    theirs: ForeignSchedule
    becomes: Becomes = Becomes.REFUSED
    reason: str = ""  # why it is refused, as sentences
    declaration: Declaration | None = None  # of our job type
    data: dict[str, Any] = field(default_factory=dict)
    run_at: datetime | None = None  # of a single job
    id: UUID | None = None  # of a single job

    @property
    def name(self) -> str:
        """Of our schedule."""
        return self.theirs.name

    @property
    def job_type(self) -> str:
        """Of its jobs; empty if there is none."""
        return self.declaration.name if self.declaration else ""

    @property
    def job_options(self) -> dict[str, Any]:
        """Of a single job."""
        options = {"run_after": self.run_at, "id": self.id, **self.theirs.options}
        if self.theirs.ends is not None:
            options["expires_at"] = self.theirs.ends
        return options

    @property
    def values(self) -> dict[str, Any]:
        """The arguments of ``schedule_operations.create``, besides the names."""
        one = self.theirs
        assert one.rule is not None
        return {
            "rule": one.rule.text,
            "time_zone": one.time_zone,
            "data": self.data,
            "options": one.options,
            **one.period,
        }


def plan(
    source: Source, job_types: Mapping[str, str], *, using: str | None = None
) -> list[PlannedImport]:
    """Plan the import of each of their schedules. ``job_types`` are those of
    their tasks' names, where they are called otherwise.

    Raises InvalidArguments if their table is missing, or a name of ``job_types`` is
    none of theirs; UnknownJobType for a job type without a handler.
    """
    db = DjangoDatabase(using)
    if not foreign_tables.exists(db, source.table):
        raise InvalidArguments(
            f"There is no table {source.table} in the database {db.alias!r}: "
            f"{source.label} is not installed there, or its migrations have not run."
        )
    now = timezones.now()
    schedules = source.read(source.rows(db), now)
    make_unique(schedules)
    _check_map(job_types, [one.task for one in schedules])
    held = foreign_tables.held(db, [one.name for one in schedules])
    known = set(store_find.known_names(db))
    ours = OurSchedules(db, known)
    planned = []
    for one in schedules:
        item = PlannedImport(theirs=one)
        try:
            item.declaration = _declaration(one.task, job_types, known)
            _decide(item, source, db, held.get(one.name), now)
            if item.becomes in (Becomes.SCHEDULE, Becomes.PAUSED):
                _refuse_double(item, ours, now)
        except (NotImportable, InvalidArguments) as error:
            item.becomes = Becomes.REFUSED
            item.reason = one.refusal or str(error)
        planned.append(item)
    return planned


def carry_out(
    planned: Sequence[PlannedImport],
    source: Source,
    *,
    disables: bool,
    using: str | None = None,
    by: str = "",
) -> int:
    """Make what is planned and not here already, all or nothing. With ``disables``
    theirs are turned off in the same transaction; return how many were on."""
    db = DjangoDatabase(using)

    def write() -> int:
        for item in planned:
            if item.becomes is Becomes.JOB:
                _enqueue(item, using, by)
            elif item.becomes in NEW:
                schedule_operations.create(
                    item.name, item.job_type, using=using, by=by, **item.values
                )
        paused = [item.name for item in planned if item.becomes is Becomes.PAUSED]
        if paused:
            reason = f"disabled in {source.label}"
            schedule_operations.pause(paused, reason=reason, using=using, by=by)
        ours = [i.theirs.id for i in planned if i.becomes is not Becomes.REFUSED]
        return source.disable(db, ours) if disables and ours else 0

    return db.in_transaction(write)


def _check_map(job_types: Mapping[str, str], tasks: Collection[str]) -> None:
    for task, job_type in job_types.items():
        if task not in tasks:
            hint = did_you_mean(task, tasks)
            raise InvalidArguments(f"None of their schedules is of {task!r}.{hint}")
        if registry.get(job_type) is None:
            raise UnknownJobType(job_type, registry.near(job_type))


def _declaration(
    task: str, job_types: Mapping[str, str], known: Collection[str]
) -> Declaration:
    """Our handler for their task: as the map says, or of the same name, or the only one
    whose function is called so."""
    name = job_types.get(task, task)
    declaration = registry.get(name)
    if declaration is None:
        function = task.rpartition(".")[2]
        names = [n for n in handler_names() if n.rpartition(".")[2] == function]
        hint = f"say --map {task}=…"
        if len(names) > 1:
            listed = ", ".join(sorted(names))
            raise NotImportable(
                f"Several handlers are named {function!r}: {listed}; {hint}."
            )
        if not names:
            raise NotImportable(
                f"No handler is called {function!r}: write it, or {hint}."
            )
        declaration = registry.get(names[0])
    assert declaration is not None
    if declaration.name not in known:
        raise NotImportable(
            f"The job type {declaration.name} has no row yet: run manage.py migrate."
        )
    return declaration


def _decide(
    item: PlannedImport,
    source: Source,
    db: Database,
    held: dict[str, Any] | None,
    now: datetime,
) -> None:
    """Raises NotImportable, InvalidArguments."""
    one = item.theirs
    if one.once:
        _decide_job(item, source, db, now)
        return
    if one.refusal:
        raise NotImportable(one.refusal)
    item.data = _bound(item)
    planned = _check(item)
    if held is not None:
        _refuse_another(planned, held)
        item.becomes = Becomes.THERE
        return
    item.becomes = Becomes.SCHEDULE if one.enabled else Becomes.PAUSED


def _refuse_another(planned: ScheduleDeclaration, held: dict[str, Any]) -> None:
    """Raises NotImportable if ours of this name is not what an import makes of theirs:
    theirs, if it were turned off, would happen no more."""
    what = f"The schedule {planned.name!r} here"
    if held["origin"] != Origin.ADMIN:
        raise NotImportable(
            f"{what} is declared by the code. If it does the same, disable theirs by "
            "hand."
        )
    row = row_of(planned)
    others = [name for name in SAME if held[name] != row[name]]
    if others:
        raise NotImportable(
            f"{what} has another {' and '.join(others).replace('_', ' ')}. If it does "
            "the same, disable theirs by hand."
        )


def _refuse_double(item: PlannedImport, ours: OurSchedules, now: datetime) -> None:
    """Raises NotImportable if a schedule here does the same under another name."""
    if reason := ours.double_of(_check(item), now):
        raise NotImportable(reason)


def _decide_job(
    item: PlannedImport, source: Source, db: Database, now: datetime
) -> None:
    """A single job is known again by its id, which is made of what it is for."""
    one = item.theirs
    moment = f" {one.run_at.isoformat()}" if one.run_at else ""
    item.id = id_of_text(item.job_type, f"{source.label} {one.id} {one.name}{moment}")
    if store_find.find(db, item.id) is not None:
        item.becomes = Becomes.THERE
        return
    if one.refusal:
        raise NotImportable(one.refusal)
    if not one.enabled:
        raise NotImportable("It is disabled there, and a single job has no pause.")
    item.run_at = one.run_at or _next_moment(one, now)
    if item.run_at is None or item.run_at <= now:
        raise NotImportable("Its moment is over.")
    item.data = _bound(item)
    Options().but(item.job_options).new_job(item.job_type, item.declaration)
    item.becomes = Becomes.JOB


def _next_moment(one: ForeignSchedule, now: datetime) -> datetime | None:
    assert one.rule is not None
    moment = one.rule.next_after(max(now, one.starts) if one.starts else now)
    return None if moment and one.ends and moment > one.ends else moment


def _bound(item: PlannedImport) -> dict[str, Any]:
    """Their arguments by the names of our handler's parameters."""
    assert item.declaration is not None
    data = item.declaration.parameters.bind(item.theirs.args, item.theirs.kwargs)
    to_json(data, limit=conf.max_data_bytes)
    return data


def _check(item: PlannedImport) -> ScheduleDeclaration:
    return schedule_operations.check(item.name, item.job_type, **item.values)


def _enqueue(item: PlannedImport, using: str | None, by: str) -> None:
    job = by_name.enqueue(
        item.job_type,
        item.data,
        enqueued_by=by or None,
        using=using,
        **item.job_options,
    )
    record("enqueue", by, 1, {"id": str(job.id), "job_type": job.job_type})
