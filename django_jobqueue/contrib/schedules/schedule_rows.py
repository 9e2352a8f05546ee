"""The rows of schedules: what the code declares, and what operators change."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django_jobqueue.contrib.schedules.due_firings import FiringOutcome
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import ScheduleDeclaration, schedules
from django_jobqueue.store.connection import Database
from django_jobqueue.store.declaring import Declaring, seconds_of

if TYPE_CHECKING:
    from django_jobqueue.host.maintenance.declarer import Step

# The columns that the code declares, and their types in JSON.
DECLARED: Final = {
    "job_type": "text",
    "rule": "text",
    "time_zone": "text",
    "data": "jsonb",
    "options": "jsonb",
    "missed": "text",
    "missed_within": "interval",
    "missed_most": "integer",
    "overlap": "text",
    "jitter": "interval",
    "starts_at": "timestamptz",
    "ends_at": "timestamptz",
}

# What operators say instead is never touched, nor is a schedule of theirs.
DECLARING: Final = Declaring(
    "jobqueue_schedules_schedule",
    DECLARED,
    differs="held.origin = 'code' AND (held.gone_at IS NOT NULL OR {differ})",
    inserted={"origin": "'code'", "declared_at": "clock_timestamp()"},
    updated={
        "gone_at": "NULL",
        "planned_for": (
            "CASE WHEN held.gone_at IS NULL THEN held.planned_for ELSE '' END"
        ),
    },
)
COLUMNS: Final = DECLARING.columns
TYPED: Final = DECLARING.typed

# One that this code does not declare any more, though it has its job type, is gone; of
# other job types other projects may know.
GONE: Final = """
UPDATE jobqueue_schedules_schedule
   SET gone_at = clock_timestamp()
 WHERE origin = 'code' AND gone_at IS NULL
   AND job_type = ANY (%(job_types)s::text[]) AND name <> ALL (%(names)s::text[])
"""


def steps(db: Database) -> list[Step]:
    names = schedules.names
    return [
        (
            "gone schedules of",
            [declaration.name for declaration in registry],
            partial(retire, db, names),
        ),
        ("schedules", list(schedules), partial(write, db)),
    ]


def declare(db: Database) -> None:
    """Write the schedules of the code to their rows. Others of its job types are
    gone."""
    for _what, items, declare_them in steps(db):
        declare_them(items)


def write(db: Database, declarations: Iterable[ScheduleDeclaration]) -> None:
    if rows := [row_of(one) for one in declarations]:
        DECLARING.write(db, json.dumps(rows))


def retire(db: Database, names: Sequence[str], job_types: Collection[str]) -> None:
    """Record that the code declares only these schedules of these job types."""
    db.run(GONE, {"names": list(names), "job_types": list(job_types)})


def row_of(one: ScheduleDeclaration) -> dict[str, Any]:
    return {
        "name": one.name,
        "job_type": one.job_type,
        "rule": one.rule.text,
        "time_zone": one.time_zone,
        "data": one.data,
        "options": one.options,
        "missed": one.missed.missed.value,
        "missed_within": seconds_of(one.missed.within),
        "missed_most": one.missed.most,
        "overlap": one.overlap.value,
        "jitter": seconds_of(one.jitter) if one.jitter else None,
        "starts_at": text_of(one.starts_at),
        "ends_at": text_of(one.ends_at),
    }


def text_of(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


# A second pause replaces the first one, if it has a reason.
PAUSE: Final = """
UPDATE jobqueue_schedules_schedule
   SET paused = true, paused_at = clock_timestamp(), paused_by = %(by)s,
       paused_reason = %(reason)s
 WHERE name = ANY (%(names)s::text[]) AND (NOT paused OR %(reason)s::text <> '')
RETURNING name
"""

# A pause is no outage: what would have fired in it is not missed.
RESUME: Final = """
UPDATE jobqueue_schedules_schedule
   SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
       planned_for = ''
 WHERE name = ANY (%(names)s::text[]) AND paused
RETURNING name
"""

NAMES: Final = "SELECT name FROM jobqueue_schedules_schedule"

LOCKED: Final = """
SELECT origin, job_type, gone_at IS NOT NULL FROM jobqueue_schedules_schedule
 WHERE name = %(name)s FOR NO KEY UPDATE
"""

CREATE: Final = f"""
INSERT INTO jobqueue_schedules_schedule (name, origin, {COLUMNS})
SELECT %(name)s, 'admin', {COLUMNS}
  FROM jsonb_to_record(%(schedule)s::jsonb) AS given ({TYPED})
    ON CONFLICT (name) DO NOTHING
RETURNING name
"""

EDIT: Final = f"""
UPDATE jobqueue_schedules_schedule
   SET {", ".join(f"{column} = given.{column}" for column in DECLARED)}
  FROM jsonb_to_record(%(schedule)s::jsonb) AS given ({TYPED})
 WHERE name = %(name)s
"""

# What is not given stays as it is.
OVERRIDE: Final = """
UPDATE jobqueue_schedules_schedule
   SET rule_override = CASE WHEN 'rule' = ANY (%(given)s::text[])
                            THEN %(rule)s ELSE rule_override END,
       time_zone_override = CASE WHEN 'time_zone' = ANY (%(given)s::text[])
                                 THEN %(time_zone)s ELSE time_zone_override END,
       data_override = CASE WHEN 'data' = ANY (%(given)s::text[])
                            THEN %(data)s::jsonb ELSE data_override END
 WHERE name = %(name)s
"""
OVERRIDES: Final = ("rule", "time_zone", "data")

DELETE: Final = """
WITH gone AS (
  DELETE FROM jobqueue_schedules_schedule
   WHERE name = %(name)s
     AND (origin = 'admin' OR gone_at IS NOT NULL
          OR NOT %(has_handler)s AND NOT EXISTS (
               SELECT FROM jobqueue_worker AS worker
                WHERE worker.lease_until > clock_timestamp()
                  AND worker.stopped_at IS NULL
                  AND worker.job_types ? jobqueue_schedules_schedule.job_type))
  RETURNING name
), history AS (
  DELETE FROM jobqueue_schedules_firing USING gone WHERE schedule = gone.name
)
SELECT name FROM gone
"""

RAN: Final = """
INSERT INTO jobqueue_schedules_firing (schedule, fires_at, job_id, outcome, by)
VALUES (%(name)s, %(fires_at)s, %(job_id)s, %(outcome)s, %(by)s)
"""


def pause(db: Database, names: Sequence[str], by: str, reason: str) -> list[str]:
    """Pause these schedules; return those that were not paused, or have a new
    reason."""
    params = {"names": list(names), "by": by, "reason": reason}
    return [name for (name,) in db.fetch(PAUSE, params)]


def resume(db: Database, names: Sequence[str]) -> list[str]:
    return [name for (name,) in db.fetch(RESUME, {"names": list(names)})]


def known_names(db: Database) -> list[str]:
    return [name for (name,) in db.fetch(NAMES)]


def lock(db: Database, name: str) -> tuple[str, str, bool] | None:
    """The origin and job type of a schedule, and whether it is gone, locked until the
    transaction ends; None if there is none."""
    rows = db.fetch(LOCKED, {"name": name})
    return rows[0] if rows else None


def create(db: Database, schedule: ScheduleDeclaration) -> bool:
    """Add a schedule of an operator's; False if its name is taken."""
    return bool(db.fetch(CREATE, _params(schedule)))


def edit(db: Database, schedule: ScheduleDeclaration) -> None:
    db.run(EDIT, _params(schedule))


def override(db: Database, name: str, values: Mapping[str, Any]) -> None:
    """Write these overrides of a schedule of the code; None lets the code decide."""
    data = values.get("data")
    params = {
        **dict.fromkeys(OVERRIDES),
        **values,
        "data": None if data is None else json.dumps(data),
        "given": list(values),
        "name": name,
    }
    db.run(OVERRIDE, params)


def delete(db: Database, name: str, *, has_handler: bool) -> bool:
    """Delete a schedule that no code declares, with its history; False if the code
    declares it.

    ``has_handler``: whether this code has a handler of its job type. If it has none,
    and no living worker has one, nobody declares it.
    """
    return bool(db.fetch(DELETE, {"name": name, "has_handler": has_handler}))


def add_manual_firing(
    db: Database, name: str, fires_at: datetime, job_id: UUID, by: str
) -> None:
    """Write into the history that somebody ran this schedule."""
    outcome = FiringOutcome.MANUAL.value
    params = {"name": name, "fires_at": fires_at, "job_id": job_id}
    db.run(RAN, {**params, "outcome": outcome, "by": by})


def _params(schedule: ScheduleDeclaration) -> dict[str, Any]:
    return {"name": schedule.name, "schedule": json.dumps(row_of(schedule))}
