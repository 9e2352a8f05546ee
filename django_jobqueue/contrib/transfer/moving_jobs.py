"""Moves queued jobs from one database to another, each step a transaction of its own.

A job that moves is held in both databases before it leaves the first one: as a running
job of a row in ``jobqueue_worker`` whose state is ``moving``, so that no worker claims
it, and no rescue takes it when the command dies. The owner of that row is the other
database, by its identity, since two projects may use one alias for different ones. So a
kill between any two steps leaves each job in one of these states, and the next move can
tell which:

1. held here: it goes back to the queue here;
2. held here and there: it is deleted here, then released there;
3. held there only: it is released there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.followers import job_types_of
from django_jobqueue.domain.registry import OWN
from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.window import Values
from django_jobqueue.store.columns import copied_to
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.queue.insert_statement import insert_jobs
from django_jobqueue.store.selection import TABLES, condition
from django_jobqueue.text.json_reading import read_json

BATCH: Final = 200  # jobs that are held at a time

_COLUMNS: Final = copied_to("move")
_NAMES: Final = ", ".join(_COLUMNS)

# Two aliases may lead to the same tables, by different hosts or users.
TABLES_IN_USE: Final = """
SELECT concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
                 (SELECT oid FROM pg_database WHERE datname = current_database()),
                 'jobqueue_queuedjob'::regclass::oid)
"""

COUNT: Final = """
SELECT counted.job_type, counted.queue, type.delivery = 'at_most_once', counted.jobs
  FROM (SELECT job_type, queue, count(*) AS jobs FROM {table}
         WHERE {condition}
         GROUP BY job_type, queue) AS counted
  JOIN jobqueue_jobtype AS type ON type.name = counted.job_type
 ORDER BY counted.job_type, counted.queue
"""
FOLLOWERS: Final = """
SELECT DISTINCT followers::text FROM {table}
 WHERE {condition} AND followers IS NOT NULL
"""

REGISTER: Final = """
INSERT INTO jobqueue_worker (name, owner, host, pid, identity, state, lease_until)
VALUES (%(name)s, %(owner)s, %(host)s, %(pid)s, %(identity)s, 'moving',
        clock_timestamp() + %(lease)s * interval '1 second')
RETURNING id
"""
RENEW: Final = """
UPDATE jobqueue_worker
   SET renewed_at = clock_timestamp(),
       lease_until = clock_timestamp() + %(lease)s * interval '1 second'
 WHERE id = %(holder)s AND state = 'moving'
RETURNING id
"""

# Locked first: whoever holds a job, or inserts one, shares this lock. So the statement
# after it sees all that they hold, and they hold nothing after it.
LOCK_HOLDERS: Final = """
SELECT id, identity, lease_until < clock_timestamp() FROM jobqueue_worker
 WHERE state = 'moving' AND owner = %(owner)s AND id <> %(holder)s
   FOR UPDATE
"""
LOCK_OWN: Final = """
SELECT id FROM jobqueue_worker WHERE id = %(holder)s FOR UPDATE
"""
TAKE_OVER: Final = """
UPDATE jobqueue_queuedjob AS job
   SET worker_id = %(holder)s
 WHERE job.status = 'running' AND job.worker_id = ANY (%(gone)s::bigint[])
"""
# The rescue would take the jobs of a holder that is not there.
FORGET: Final = """
DELETE FROM jobqueue_worker AS holder
 WHERE holder.id = ANY (%(gone)s::bigint[]) AND holder.state = 'moving'
   AND NOT EXISTS (SELECT FROM jobqueue_queuedjob AS job
                    WHERE job.status = 'running' AND job.worker_id = holder.id)
"""

_LIVE: Final = """
live AS MATERIALIZED (
  SELECT id FROM jobqueue_worker
   WHERE id = %(holder)s AND state = 'moving'
     FOR SHARE
)"""

# As a claim does it, but the unique key and the fence stay: the job is not started.
# Where the order of a key is strict, a fence that is not 0 says so. The holder's id,
# which no other one ever has, is what stops a move that was taken for dead.
HOLD: Final = f"""
WITH {_LIVE}, picked AS MATERIALIZED (
  SELECT job.id
    FROM live, jobqueue_queuedjob AS job
    JOIN jobqueue_jobtype AS type ON type.name = job.job_type
   WHERE job.id = ANY (%(ids)s::uuid[]) AND job.status = 'queued'
     AND type.delivery <> 'at_most_once' AND NOT starts_with(job.job_type, '{OWN}')
     FOR UPDATE OF job SKIP LOCKED
)
UPDATE jobqueue_queuedjob AS job
   SET status = 'running', worker_id = %(holder)s, started_at = statement_timestamp(),
       attempts = least(job.attempts, 2147483646) + 1
  FROM picked
 WHERE job.id = picked.id
RETURNING job.id
"""
COUNT_HELD: Final = """
SELECT count(*) FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running'
   AND job.worker_id IN (SELECT id FROM jobqueue_worker
                          WHERE state = 'moving' AND owner = %(owner)s)
"""
HELD: Final = """
SELECT id FROM jobqueue_queuedjob
 WHERE status = 'running' AND worker_id = %(holder)s
 ORDER BY id
"""
# What is to be cancelled stays, and is cancelled here.
READ: Final = f"""
SELECT id, (SELECT to_jsonb(columns) FROM (SELECT {_NAMES}) AS columns)::text
  FROM jobqueue_queuedjob AS job
 WHERE id = ANY (%(ids)s::uuid[]) AND status = 'running' AND worker_id = %(holder)s
   AND cancel_requested_at IS NULL
 ORDER BY id
"""
# Nobody is notified before they are released.
STAGE: Final = f"WITH {_LIVE}" + insert_jobs(
    {
        **{name: name for name in _COLUMNS},
        "status": "'running'",
        "worker_id": "%(holder)s",
        "started_at": "statement_timestamp()",
        "announce": "false",
    },
    rows="""\
  FROM (SELECT job.*
          FROM live,
               jsonb_populate_recordset(NULL::jobqueue_queuedjob, %(jobs)s::jsonb)
               AS job) AS job
 WHERE NOT EXISTS (SELECT FROM jobqueue_archivedjob AS old WHERE old.id = job.id)""",
    then="ON CONFLICT DO NOTHING RETURNING id",
)
EXISTING: Final = """
SELECT id FROM jobqueue_queuedjob WHERE id = ANY (%(ids)s::uuid[])
UNION ALL
SELECT id FROM jobqueue_archivedjob WHERE id = ANY (%(ids)s::uuid[])
"""
DELETE: Final = """
DELETE FROM jobqueue_queuedjob AS job
 WHERE job.id = ANY (%(ids)s::uuid[]) AND job.worker_id = %(holder)s
   AND job.status = 'running' AND job.cancel_requested_at IS NULL
RETURNING job.id
"""
DROP: Final = """
DELETE FROM jobqueue_queuedjob AS job
 WHERE job.id = ANY (%(ids)s::uuid[]) AND job.worker_id = %(holder)s
   AND job.status = 'running'
"""


class SelectedJobs(NamedTuple):
    """How many jobs of a type are selected in a queue."""

    job_type: str
    queue: str
    is_at_most_once: bool
    jobs: int


class Holders(NamedTuple):
    """The other moves between the same databases, in the same direction."""

    taken_over: int  # that had died
    alive: int


def count(db: Database, selection: Selection) -> list[SelectedJobs]:
    """The selected jobs by type and queue."""
    values = Values()
    statement = COUNT.format(
        table=TABLES[selection.table], condition=condition(selection, values)
    )
    return [SelectedJobs(*row) for row in db.fetch(statement, values.params)]


def followers(db: Database, selection: Selection) -> set[str]:
    """The job types of the followers that the selected jobs have, and of theirs."""
    values = Values()
    statement = FOLLOWERS.format(
        table=TABLES[selection.table], condition=condition(selection, values)
    )
    rows = db.fetch(statement, values.params)
    return {name for (text,) in rows for name in job_types_of(read_json(text))}


def have_same_tables(one: Database, other: Database) -> bool:
    """True if two databases are the same one."""
    return one.fetch(TABLES_IN_USE) == other.fetch(TABLES_IN_USE)


def register(db: Database, values: Mapping[str, Any]) -> int:
    """Write the row that holds jobs; return its id, which is never reused. The values
    are ``name``, ``owner``, ``host``, ``pid``, ``identity``, and ``lease`` in
    seconds."""
    holder: int = db.fetch(REGISTER, values)[0][0]
    return holder


def renew(db: Database, holder: int, lease: float) -> bool:
    """Renew the lease; False if another move has taken over."""
    return bool(db.fetch(RENEW, {"holder": holder, "lease": lease}))


def take_over(
    db: DjangoDatabase, owner: str, holder: int, is_dead: Callable[[str], bool]
) -> Holders:
    """Take over what moves of this owner hold that have died, or whose lease lapsed;
    ``is_dead`` judges the identity of a process."""

    def take() -> Holders:
        others = db.fetch(LOCK_HOLDERS, {"owner": owner, "holder": holder})
        gone = [id for id, identity, lapsed in others if lapsed or is_dead(identity)]
        if gone:
            db.run(TAKE_OVER, {"holder": holder, "gone": gone})
            db.run(FORGET, {"gone": gone})
        return Holders(len(gone), len(others) - len(gone))

    return db.in_transaction(take)


def forget(db: DjangoDatabase, holder: int) -> None:
    """Delete the row that held jobs, unless it still does."""

    def delete() -> None:
        db.fetch(LOCK_OWN, {"holder": holder})
        db.run(FORGET, {"gone": [holder]})

    db.in_transaction(delete)


def hold(db: Database, holder: int, ids: Sequence[UUID]) -> list[UUID]:
    """Hold those of these jobs that wait, and can be moved; return their ids."""
    return [row[0] for row in db.fetch(HOLD, {"holder": holder, "ids": list(ids)})]


def count_held(db: Database, owner: str) -> int:
    """How many jobs moves of this owner hold, alive or not."""
    ((number,),) = db.fetch(COUNT_HELD, {"owner": owner})
    return int(number)


def held(db: Database, holder: int) -> list[UUID]:
    """The ids of the jobs that are held."""
    return [id for (id,) in db.fetch(HELD, {"holder": holder})]


def read(db: Database, holder: int, ids: Sequence[UUID]) -> dict[UUID, str]:
    """The columns of those of these jobs that are held, each as the text of a JSON
    object. Nothing here parses it, so that each number keeps all its digits."""
    return dict(db.fetch(READ, {"holder": holder, "ids": list(ids)}))


def stage(db: Database, holder: int, jobs: Iterable[str]) -> list[UUID]:
    """Insert the jobs that ``read`` returned, and hold them; return the ids of those
    that were not there, nor another one with the same unique key."""
    params = {"holder": holder, "jobs": f"[{','.join(jobs)}]"}
    return [row[0] for row in db.fetch(STAGE, params)]


def existing(db: Database, ids: Sequence[UUID]) -> set[UUID]:
    """Those of these ids that a queued or an archived job has."""
    return {row[0] for row in db.fetch(EXISTING, {"ids": list(ids)})}


def delete(db: Database, holder: int, ids: Sequence[UUID]) -> list[UUID]:
    """Delete these jobs, unless they are not held any more, or are to be cancelled;
    return the ids of those that were deleted."""
    return [row[0] for row in db.fetch(DELETE, {"holder": holder, "ids": list(ids)})]


def drop(db: Database, holder: int, ids: Sequence[UUID]) -> None:
    """Delete these staged jobs, which stay where they were."""
    db.run(DROP, {"holder": holder, "ids": list(ids)})
