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
from django_jobqueue.store.schedules import DECLARED, columns_of

PAUSE: Final = """
UPDATE jobqueue_schedule
   SET paused = true, paused_at = clock_timestamp(), paused_by = %(by)s,
       paused_reason = %(reason)s
 WHERE name = ANY (%(names)s::text[]) AND NOT paused
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

INSERT: Final = f"""
INSERT INTO jobqueue_schedule (name, origin, {", ".join(DECLARED)})
VALUES (%(name)s, 'admin', {", ".join(f"%({n})s::{t}" for n, t in DECLARED.items())})
    ON CONFLICT (name) DO NOTHING
RETURNING name
"""

CHANGE: Final = "UPDATE jobqueue_schedule SET {} WHERE name = %(name)s"

DELETE: Final = """
WITH gone AS (
  DELETE FROM jobqueue_schedule
   WHERE name = %(name)s AND (origin = 'admin' OR gone_at IS NOT NULL)
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
    """Pause these schedules; return those that were not paused."""
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
    values = _params(columns_of(schedule))
    return bool(db.fetch(INSERT, {"name": schedule.name, **values}))


def change(db: Database, name: str, values: Mapping[str, Any]) -> None:
    """Write these columns of a schedule."""
    columns = ", ".join(
        f"{column} = %({column})s::{DECLARED[column.removesuffix('_override')]}"
        for column in values
    )
    db.run(CHANGE.format(columns), {"name": name, **_params(values)})


def delete(db: Database, name: str) -> bool:
    """Delete a schedule that no code declares, with its history; False if the code
    declares it."""
    return bool(db.fetch(DELETE, {"name": name}))


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


def _params(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _param(value) for name, value in values.items()}


def _param(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return value
