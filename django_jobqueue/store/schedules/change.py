"""Operators' changes of schedules: pause, overrides, schedules of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.due_firings import FiringOutcome
from django_jobqueue.domain.schedules import ScheduleDeclaration
from django_jobqueue.store.connection import Database
from django_jobqueue.store.schedules.declare import COLUMNS, DECLARED, TYPED, row_of

# A second pause replaces the first one, if it has a reason.
PAUSE: Final = """
UPDATE jobqueue_schedule
   SET paused = true, paused_at = clock_timestamp(), paused_by = %(by)s,
       paused_reason = %(reason)s
 WHERE name = ANY (%(names)s::text[]) AND (NOT paused OR %(reason)s::text <> '')
RETURNING name
"""

# A pause is no outage: what would have fired in it is not missed.
RESUME: Final = """
UPDATE jobqueue_schedule
   SET paused = false, paused_at = NULL, paused_by = '', paused_reason = '',
       planned_for = ''
 WHERE name = ANY (%(names)s::text[]) AND paused
RETURNING name
"""

NAMES: Final = "SELECT name FROM jobqueue_schedule"

LOCKED: Final = """
SELECT origin, job_type, gone_at IS NOT NULL FROM jobqueue_schedule
 WHERE name = %(name)s FOR NO KEY UPDATE
"""

CREATE: Final = f"""
INSERT INTO jobqueue_schedule (name, origin, {COLUMNS})
SELECT %(name)s, 'admin', {COLUMNS}
  FROM jsonb_to_record(%(schedule)s::jsonb) AS given ({TYPED})
    ON CONFLICT (name) DO NOTHING
RETURNING name
"""

EDIT: Final = f"""
UPDATE jobqueue_schedule
   SET {", ".join(f"{column} = given.{column}" for column in DECLARED)}
  FROM jsonb_to_record(%(schedule)s::jsonb) AS given ({TYPED})
 WHERE name = %(name)s
"""

# What is not given stays as it is.
OVERRIDE: Final = """
UPDATE jobqueue_schedule
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
  DELETE FROM jobqueue_schedule
   WHERE name = %(name)s
     AND (origin = 'admin' OR gone_at IS NOT NULL
          OR NOT %(has_handler)s AND NOT EXISTS (
               SELECT FROM jobqueue_worker AS worker
                WHERE worker.lease_until > clock_timestamp()
                  AND worker.stopped_at IS NULL
                  AND worker.job_types ? jobqueue_schedule.job_type))
  RETURNING name
), history AS (
  DELETE FROM jobqueue_firing USING gone WHERE schedule = gone.name
)
SELECT name FROM gone
"""

RAN: Final = """
INSERT INTO jobqueue_firing (schedule, fires_at, job_id, outcome, by)
VALUES (%(name)s, %(fires_at)s, %(job_id)s, %(outcome)s, %(by)s)
"""


def pause(db: Database, names: Sequence[str], by: str, reason: str) -> list[str]:
    """Pause these schedules; return those that were not paused, or have a new
    reason."""
    params = {"names": list(names), "by": by, "reason": reason}
    return [name for (name,) in db.fetch(PAUSE, params)]


def resume(db: Database, names: Sequence[str]) -> list[str]:
    """Let these schedules fire again; return those that were paused."""
    return [name for (name,) in db.fetch(RESUME, {"names": list(names)})]


def known_names(db: Database) -> list[str]:
    """The names of all schedules."""
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
    """Write all of a schedule of an operator's."""
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
    db.run(
        RAN,
        {
            "name": name,
            "fires_at": fires_at,
            "job_id": job_id,
            "outcome": FiringOutcome.MANUAL.value,
            "by": by,
        },
    )


def _params(schedule: ScheduleDeclaration) -> dict[str, Any]:
    return {"name": schedule.name, "schedule": json.dumps(row_of(schedule))}
