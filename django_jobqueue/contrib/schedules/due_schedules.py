"""Schedules that are due, or are to be planned: what is in force of them, and when they
fire next."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django_jobqueue.contrib.schedules.schedule_rows import text_of
from django_jobqueue.domain.schedules import Missed, MissedPolicy, Period, schedules
from django_jobqueue.store.connection import Database
from django_jobqueue.store.next_deadlines import Deadline
from django_jobqueue.text.json_reading import read_json

BATCH: Final = 100  # schedules in one statement

# What the next firing depends on: it is planned anew if that changed.
PLAN: Final = """
concat_ws('|', coalesce(schedule.rule_override, schedule.rule),
               coalesce(schedule.time_zone_override, schedule.time_zone),
               coalesce(extract(epoch FROM schedule.starts_at)::text, ''),
               coalesce(extract(epoch FROM schedule.ends_at)::text, ''))
"""

# A host fires what its own code declares, and what operators made. So a schedule of
# code that is nowhere any more does not fire, whatever its row says.
FIRES: Final = """
NOT schedule.paused AND schedule.gone_at IS NULL
   AND (schedule.origin = 'admin' OR schedule.name = ANY (%(schedules)s::text[]))
"""

NEXT_FIRING: Final = f"""
SELECT min(CASE WHEN schedule.planned_for = {PLAN}
                THEN extract(epoch FROM schedule.next_at - clock_timestamp())::float8
                ELSE 0 END)
  FROM jobqueue_schedules_schedule AS schedule
 WHERE {FIRES} AND schedule.name <> ALL (%(without)s::text[])
"""

# Seconds until a schedule fires, or is to be planned.
DEADLINE: Final = Deadline(
    "firing", NEXT_FIRING, lambda: {"schedules": schedules.names, "without": []}
)

_IN_FORCE: Final = f"""
SELECT schedule.name, schedule.job_type,
       coalesce(schedule.rule_override, schedule.rule),
       coalesce(schedule.time_zone_override, schedule.time_zone),
       coalesce(schedule.data_override, schedule.data)::text, schedule.options::text,
       schedule.missed, schedule.missed_within, schedule.missed_most,
       schedule.overlap = 'skip', coalesce(schedule.jitter, interval '0'),
       schedule.starts_at, schedule.ends_at, {PLAN},
       CASE WHEN schedule.planned_for = {PLAN} THEN schedule.next_at END,
       clock_timestamp()
  FROM jobqueue_schedules_schedule AS schedule
"""

FIND: Final = f"{_IN_FORCE} WHERE schedule.name = %(name)s"

DUE: Final = f"""
{_IN_FORCE}
 WHERE {FIRES}
   AND (schedule.planned_for <> {PLAN} OR schedule.next_at <= clock_timestamp())
   AND schedule.name <> ALL (%(without)s::text[])
 ORDER BY schedule.next_at, schedule.name
 LIMIT %(batch)s
"""

PLAN_NEXT: Final = f"""
UPDATE jobqueue_schedules_schedule AS schedule
   SET next_at = given.next_at, planned_for = given.plan
  FROM (SELECT held.name, given.plan, given.next_at
          FROM jsonb_to_recordset(%(schedules)s::jsonb)
               AS given (name text, plan text, next_at timestamptz)
          JOIN jobqueue_schedules_schedule AS held ON held.name = given.name
         ORDER BY held.name
           FOR NO KEY UPDATE OF held SKIP LOCKED) AS given
 WHERE schedule.name = given.name AND schedule.planned_for <> given.plan
   AND given.plan = {PLAN}
RETURNING schedule.name
"""

# Whose next moment is still to come.
WAITING: Final = f"""
{_IN_FORCE}
 WHERE NOT schedule.paused AND schedule.gone_at IS NULL
   AND schedule.planned_for = {PLAN} AND schedule.next_at > clock_timestamp()
"""

# Not while somebody has it locked, who may be firing it.
UNPLAN: Final = """
UPDATE jobqueue_schedules_schedule AS schedule
   SET planned_for = ''
  FROM (SELECT held.name
          FROM jsonb_to_recordset(%(schedules)s::jsonb)
               AS given (name text, next_at timestamptz)
          JOIN jobqueue_schedules_schedule AS held
            ON held.name = given.name AND held.next_at = given.next_at
         ORDER BY held.name
           FOR NO KEY UPDATE OF held SKIP LOCKED) AS given
 WHERE schedule.name = given.name
"""


class DueSchedule(NamedTuple):
    name: str
    job_type: str
    rule: str
    time_zone: str
    data: Any
    options: dict[str, Any]
    missed: MissedPolicy
    skips_overlap: bool
    jitter: timedelta
    period: Period
    plan: str
    next_at: datetime | None  # None if it is to be planned
    now: datetime  # by the database's clock


def due(
    db: Database, names: Sequence[str], without: Collection[str] = ()
) -> list[DueSchedule]:
    """A batch of schedules that are to be fired or planned: of those that operators
    made, and of the code's these; ``without`` some."""
    params = {"schedules": list(names), "without": list(without), "batch": BATCH}
    return [_due(*row) for row in db.fetch(DUE, params)]


def find(db: Database, name: str) -> DueSchedule | None:
    """A schedule's values in force; None if there is none of this name."""
    rows = db.fetch(FIND, {"name": name})
    return _due(*rows[0]) if rows else None


def waiting(db: Database) -> list[DueSchedule]:
    """All schedules whose next moment is still to come."""
    return [_due(*row) for row in db.fetch(WAITING)]


def next_firing(
    db: Database, names: Sequence[str], without: Collection[str]
) -> float | None:
    """Seconds until a schedule is to be fired or planned, of those of ``due()``; None
    if none ever is."""
    params = {"schedules": list(names), "without": list(without)}
    seconds: float | None = db.fetch(NEXT_FIRING, params)[0][0]
    return seconds


def plan(
    db: Database, planned: Iterable[tuple[DueSchedule, datetime | None]]
) -> set[str]:
    """Write the next moments of these schedules, where None is none; returns the names
    of those that were not planned before."""
    rows = [
        {"name": one.name, "plan": one.plan, "next_at": text_of(next_at)}
        for one, next_at in planned
    ]
    return {name for (name,) in db.fetch(PLAN_NEXT, {"schedules": json.dumps(rows)})}


def unplan(db: Database, planned: Iterable[DueSchedule]) -> None:
    """Have these schedules planned again, unless they have gone on meanwhile."""
    rows = [{"name": one.name, "next_at": text_of(one.next_at)} for one in planned]
    db.run(UNPLAN, {"schedules": json.dumps(rows)})


def _due(*row: Any) -> DueSchedule:
    name, job_type, rule, time_zone, data, options, missed, within, most, *others = row
    skips_overlap, jitter, starts_at, ends_at, plan, next_at, now = others
    return DueSchedule(
        *(name, job_type, rule, time_zone, read_json(data), read_json(options)),
        MissedPolicy(Missed(missed), within, most),
        *(skips_overlap, jitter, Period(starts_at, ends_at), plan, next_at, now),
    )
