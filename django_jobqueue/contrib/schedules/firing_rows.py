"""Fire: a schedule's moment has come → a queued job, a row of history, the next moment.

A firing is one statement with its job, and a compare-and-set on ``next_at``: of any
number of hosts one makes it, and no host leads.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue import observers
from django_jobqueue.contrib.schedules.due_firings import FiringOutcome
from django_jobqueue.contrib.schedules.due_schedules import PLAN, DueSchedule
from django_jobqueue.contrib.schedules.schedule_rows import text_of
from django_jobqueue.observers import TRACE, Enqueue, Firing, around_enqueue
from django_jobqueue.store.columns import JOB_COLUMNS
from django_jobqueue.store.connection import Database
from django_jobqueue.store.declaring import seconds_of
from django_jobqueue.store.queue.expired_keys import FREE
from django_jobqueue.store.queue.insert_statement import (
    UNLESS_THERE,
    ValuePlaces,
    insert_of,
)
from django_jobqueue.store.queue.insert_window import TAKE
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.text.json_reading import read_json


class ObservedFirings(ExitStack):
    """The enqueues of the firings that one statement makes, with observers around them;
    their jobs remember the trace."""

    def __init__(self) -> None:
        super().__init__()
        self._enqueues: list[Enqueue] = []

    def add(self, schedule: DueSchedule, firing: NewFiring, new: NewJob) -> NewJob:
        """Return the row of a firing's job, with its trace if somebody observes."""
        if not observers.registered:
            return new
        enqueue = Enqueue(
            job_type=new.job_type,
            queue=new.queue,
            ids=[firing.id] if firing.id else [],
            size=len(firing.data.encode()),
            firing=Firing(
                schedule=schedule.name,
                rule=schedule.rule,
                time_zone=schedule.time_zone,
                fires_at=firing.fires_at,
            ),
        )
        trace = self.enter_context(around_enqueue(enqueue))
        self._enqueues.append(enqueue)
        if not trace:
            return new
        metadata = {TRACE: trace, **read_json(new.options.get("metadata") or "{}")}
        return new.but(metadata=json.dumps(metadata))

    def made(self, ids: Collection[UUID | None]) -> None:
        """Only these jobs were made: another host may have made the others."""
        for enqueue in self._enqueues:
            enqueue.ids = [id for id in enqueue.ids if id in ids]


# The values of one job of an enqueue, as columns of a record, with their types.
_OF_JOB: Final = {
    "job_type": "text",
    "declared_priority": "smallint",
    "run_after": "timestamptz",
    "delay": "interval",
    "expires_in": "interval",
    "follower_types": "text[]",
} | {
    one.name: one.sql_type
    for one in JOB_COLUMNS
    if one.enqueued and f"{{given.{one.name}}}" in one.enqueued
}
# The keys that the jobs of these firings would have.
FREE_KEYS: Final = """
WITH new AS (
  SELECT given.* FROM jsonb_to_recordset(%(firings)s::jsonb)
         AS given (job_type text, data jsonb, unique_key uuid, overlap_key uuid)
)""" + FREE.format(
    of="""IN (
       SELECT new.unique_key FROM new
        UNION ALL
       SELECT new.overlap_key FROM new
        UNION ALL
       SELECT jobqueue_unique_key(type.name, type.unique_rule, new.data)
         FROM new JOIN jobqueue_jobtype AS type ON type.name = new.job_type)"""
)
_RECORD: Final = ", ".join(
    f"{name} {column_type}" for name, column_type in _OF_JOB.items()
)


# Jobs of a type that is unique for a time: the key is held by a window, not by the job.
_WINDOWED: Final = """
(new.unique_key IS NULL
 AND coalesce(type.unique_rule ->> 'until' NOT IN ('finished', 'started'), false))
"""
# A key that jobs hold for another time than they are unfinished does not say that the
# last one of the schedule is; so the history is asked. ``{schedule}`` is SQL.
_UNFINISHED: Final = """
EXISTS (SELECT FROM jobqueue_queuedjob AS job
         WHERE (job.status <> 'queued' OR job.expires_at IS NULL
                OR job.expires_at > clock_timestamp())
           AND job.id = (SELECT made.job_id FROM jobqueue_schedules_firing AS made
                          WHERE made.schedule = {schedule} AND made.job_id IS NOT NULL
                          ORDER BY made.fires_at DESC LIMIT 1))
"""
_OVERLAPS: Final = f"""
(new.overlap_key IS NOT NULL AND new.unique_key IS NULL
 AND type.unique_rule ->> 'until' <> 'finished'
 AND {_UNFINISHED.format(schedule="new.schedule")})
"""
_TAKEN: Final = f"""
INSERT INTO jobqueue_uniquewindow AS held (key, job_id, held_until, opened_at)
SELECT DISTINCT ON (key) key, id,
       clock_timestamp() + nullif(until, 'forever')::float8 * interval '1 second',
       clock_timestamp()
  FROM (SELECT jobqueue_unique_key(type.name, type.unique_rule, new.data) AS key,
               new.id, type.unique_rule ->> 'until' AS until
          FROM new JOIN jobqueue_jobtype AS type ON type.name = new.job_type
         WHERE {_WINDOWED} AND {_OVERLAPS} IS NOT TRUE) AS windowed
 ORDER BY key, id
{TAKE}
RETURNING job_id
"""


# A single enqueue, for the rows of ``new``. By what a job is unique says its option,
# then its type, then its schedule.
_MADE: Final = insert_of(
    ValuePlaces("new.{}"),
    source=" new,",
    condition=f"(NOT {_WINDOWED} OR new.id IN (SELECT job_id FROM taken))"
    f" AND {_OVERLAPS} IS NOT TRUE AND ",
    unique_key=f"""coalesce(new.unique_key, CASE WHEN NOT {_WINDOWED} THEN
                  jobqueue_unique_key(
                  type.name, type.unique_rule, new.data) END, new.overlap_key)""",
    unique_until_started="new.unique_key IS NULL"
    " AND coalesce(type.unique_rule ->> 'until' = 'started', false)",
    announce="true",
    due="new.run_after",  # which may be late
    conflict=UNLESS_THERE,
    notified="id",
)

# The instants of a firing that is in the history already are not made again, and the
# history's primary key refuses the whole statement if two of them raced.
FIRE: Final = f"""
WITH given AS MATERIALIZED (
  SELECT schedule.name, given.next_at, given.fires_at
    FROM jsonb_to_recordset(%(schedules)s::jsonb)
         AS given (name text, plan text, expected timestamptz, next_at timestamptz,
                   fires_at timestamptz)
    JOIN jobqueue_schedules_schedule AS schedule
      ON schedule.name = given.name AND schedule.next_at = given.expected
   WHERE NOT schedule.paused AND schedule.gone_at IS NULL
     AND schedule.planned_for = given.plan AND given.plan = {PLAN}
   ORDER BY schedule.name
     FOR NO KEY UPDATE OF schedule SKIP LOCKED
), moved AS (
  UPDATE jobqueue_schedules_schedule AS schedule
     SET next_at = given.next_at,
         fired_at = greatest(schedule.fired_at, given.fires_at)
    FROM given
   WHERE schedule.name = given.name
  RETURNING schedule.name
), firing AS MATERIALIZED (
  SELECT firing.*
    FROM jsonb_to_recordset(%(firings)s::jsonb)
         AS firing (schedule text, fires_at timestamptz, outcome text, number integer,
                    overlap_key uuid, {_RECORD})
    JOIN moved ON moved.name = firing.schedule
   WHERE NOT EXISTS (SELECT FROM jobqueue_schedules_firing AS made
                      WHERE made.schedule = firing.schedule
                        AND made.fires_at = firing.fires_at)
), new AS (
  SELECT * FROM firing WHERE id IS NOT NULL
), taken AS (
  {_TAKEN.strip()}
), made AS (
  {_MADE.strip()}
)
INSERT INTO jobqueue_schedules_firing (schedule, fires_at, job_id, outcome, number)
SELECT firing.schedule, firing.fires_at, made.id,
       CASE WHEN firing.id IS NOT NULL AND made.id IS NULL THEN 'skipped'
            ELSE firing.outcome END, firing.number
  FROM firing LEFT JOIN made ON made.id = firing.id
RETURNING schedule, job_id
"""


UNFINISHED: Final = f"SELECT {_UNFINISHED.format(schedule='%(name)s')}"

# Each second's firing for a month are 2.6 million rows of some 100 bytes.
PRUNE_FIRINGS: Final = """
WITH old AS MATERIALIZED (
  SELECT schedule, fires_at FROM jobqueue_schedules_firing
   WHERE created_at < clock_timestamp() - interval '30 days'
   ORDER BY created_at
   LIMIT %(batch)s
     FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM jobqueue_schedules_firing AS firing USING old
   WHERE (firing.schedule, firing.fires_at) = (old.schedule, old.fires_at)
  RETURNING 1
)
SELECT count(*) FROM gone
"""
PRUNE_BATCH: Final = 5_000


class NewFiring(NamedTuple):
    fires_at: datetime
    outcome: FiringOutcome
    number: int = 1  # of the firings that it stands for, if they were missed
    id: UUID | None = None  # of its job; None if there is none
    new: NewJob | None = None
    overlap_key: UUID | None = None  # unfinished jobs of the schedule have it
    data: str = "{}"  # JSON text


def fire(
    db: Database,
    due: Iterable[tuple[DueSchedule, datetime | None, Sequence[NewFiring]]],
) -> list[tuple[str, UUID | None]]:
    """Make these firings and move their schedules on to the next moment.

    Returns the schedule and job of each firing that was made here; what another host
    has fired, or is just firing, is left out.
    """
    schedules, firings = [], []
    with ObservedFirings() as observed:
        for one, next_at, new in due:
            schedules.append(
                {
                    "name": one.name,
                    "plan": one.plan,
                    "expected": text_of(one.next_at),
                    "next_at": text_of(next_at),
                    "fires_at": text_of(max(firing.fires_at for firing in new)),
                }
            )
            firings += [_firing(one, firing, observed) for firing in new]
        params = {"schedules": json.dumps(schedules), "firings": json.dumps(firings)}
        db.run(FREE_KEYS, params)
        made = [(name, id) for name, id in db.fetch(FIRE, params)]
        observed.made({id for _, id in made})
    return made


def has_unfinished_job(db: Database, name: str) -> bool:
    """True if the last job of this schedule waits or runs."""
    return bool(db.fetch(UNFINISHED, {"name": name})[0][0])


def prune_firings(db: Database) -> bool:
    """Delete a batch of firings of more than a month ago; True if it was full."""
    ((count,),) = db.fetch(PRUNE_FIRINGS, {"batch": PRUNE_BATCH})
    return bool(count == PRUNE_BATCH)


def _firing(
    schedule: DueSchedule, firing: NewFiring, observed: ObservedFirings
) -> dict[str, Any]:
    record = {
        "schedule": schedule.name,
        "fires_at": text_of(firing.fires_at),
        "outcome": firing.outcome.value,
        "number": firing.number,
    }
    if firing.new is None or firing.id is None:
        return record
    new = observed.add(schedule, firing, firing.new)
    own = {"id": firing.id, "data": firing.data, "overlap_key": firing.overlap_key}
    values = {**new.params(), **own}
    types = {**_OF_JOB, "overlap_key": "uuid"}
    return record | {name: _json(values[name], types[name]) for name in types}


def _json(value: Any, sql_type: str) -> Any:
    if sql_type == "jsonb" and value is not None:
        return read_json(value)
    if isinstance(value, datetime):
        return text_of(value)
    if isinstance(value, timedelta):
        return seconds_of(value)
    return str(value) if isinstance(value, UUID) else value
