"""Stores the rows of remote workers: programs that do jobs over the HTTP API. They
renew their leases themselves, and are rescued as all workers are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.text.json_reading import read_json

# How long attempts have run that no process of ours measures: the database's clock
# may be set, and then the time since an attempt started says nothing. So time counts
# from one moment at which the holder was seen to the next, as its row has them. If
# these are further apart than they can be, the clock leapt, and what it leapt does
# not count: the start of the attempt moves on as far.
# Seconds between two looks at endpoints, which every host takes; more do not count.
# Remote workers that say nothing for their lease are given up.
LONGEST_UNSEEN: Final = 60
_LONGEST: Final = f"""
coalesce(worker.lease_seconds,
         CASE WHEN worker.state = 'endpoint' THEN {LONGEST_UNSEEN} END)
"""
_SEEN: Final = "greatest(worker.renewed_at, job.started_at)"
_LEAPT: Final = f"""
coalesce(clock_timestamp() > {_SEEN} + {_LONGEST} * interval '1 second', false)
"""

# Seconds; of the rows ``job`` and ``worker``, which holds it.
RAN: Final = f"""
greatest(0, extract(epoch FROM CASE WHEN {_LEAPT} THEN {_SEEN} ELSE clock_timestamp()
                               END - job.started_at))::float8
"""

# To be done as the holders are seen: ``seen`` has their rows as they were before,
# locked. What started later than now, by a clock that was set back since, starts now.
# Seconds, since days are not of one length everywhere.
KEEP_STARTS: Final = f"""
moved AS MATERIALIZED (
  SELECT job.id, CASE WHEN {_LEAPT}
                      THEN extract(epoch FROM clock_timestamp() - {_SEEN})::float8
                      ELSE 0 END AS leapt
    FROM seen AS worker
    JOIN jobqueue_queuedjob AS job
      ON job.status = 'running' AND job.worker_id = worker.id
   WHERE {_LEAPT} OR job.started_at > clock_timestamp()
   ORDER BY job.id
     FOR NO KEY UPDATE OF job
), kept AS (
  UPDATE jobqueue_queuedjob AS job
     SET started_at = least(job.started_at + moved.leapt * interval '1 second',
                            clock_timestamp())
    FROM moved
   WHERE job.id = moved.id
)
"""

MOST_WORKERS: Final = 1_000  # living ones of one owner

REGISTER: Final = f"""
INSERT INTO jobqueue_worker (
       remote, owner, lease_seconds, name, host, pid, release, queues, job_types,
       async_slots, lease_until)
SELECT true, %(owner)s::text, %(lease)s::float8, %(name)s, '', 0, %(release)s,
       %(queues)s::jsonb, %(job_types)s::jsonb, %(slots)s,
       clock_timestamp() + %(lease)s * interval '1 second'
 WHERE (SELECT count(*) FROM jobqueue_worker
         WHERE remote AND owner = %(owner)s::text
           AND state IN ('running', 'draining')) < {MOST_WORKERS}
RETURNING id
"""

# Whoever was given up is not renewed, and so learns that it was.
RENEW: Final = f"""
WITH seen AS MATERIALIZED (
  SELECT id, renewed_at, lease_seconds, state FROM jobqueue_worker
   WHERE id = %(id)s AND owner = %(owner)s::text AND remote
     AND state IN ('running', 'draining')
     FOR NO KEY UPDATE
), {KEEP_STARTS}
UPDATE jobqueue_worker AS worker
   SET renewed_at = clock_timestamp(),
       lease_until = clock_timestamp() + worker.lease_seconds * interval '1 second',
       running = (SELECT count(*) FROM jobqueue_queuedjob AS job
                   WHERE job.status = 'running' AND job.worker_id = worker.id),
       state = CASE WHEN desired IN ('drain', 'stop', 'restart') THEN 'draining'
                    ELSE 'running' END,
       request = CASE WHEN request ? 'asked_at' AND NOT request ? 'heard_at'
                      THEN request
                           || jsonb_build_object('heard_at', clock_timestamp())
                      ELSE request END
  FROM seen
 WHERE worker.id = seen.id
RETURNING worker.id, name, release, desired, async_slots, worker.lease_seconds,
          running, job_types::text, queues::text
"""

FIND: Final = """
SELECT id, name, release, desired, async_slots, lease_seconds, running,
       job_types::text, queues::text
  FROM jobqueue_worker
 WHERE id = %(id)s AND owner = %(owner)s::text AND remote
   AND state IN ('running', 'draining')
"""

# Held until the claim commits: a worker that is given up, or leaves, claims nothing
# afterwards, and two requests of one worker cannot take more than its slots.
LOCK: Final = """
SELECT state FROM jobqueue_worker
 WHERE id = %(id)s AND state IN ('running', 'draining') FOR NO KEY UPDATE
"""
HELD_COUNT: Final = """
SELECT count(*), coalesce(bool_or(job.quarantined), false)
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running' AND job.worker_id = %(id)s
"""

END: Final = """
UPDATE jobqueue_worker
   SET state = 'stopped', stopped_at = clock_timestamp(), listening = false,
       running = 0, "end" = %(end)s
 WHERE id = %(id)s AND owner = %(owner)s::text AND remote
   AND state IN ('running', 'draining')
RETURNING name
"""

RESCUERS: Final = """
SELECT EXISTS (SELECT FROM jobqueue_worker
                WHERE NOT remote AND state IN ('running', 'draining')
                  AND lease_until > statement_timestamp())
"""

# Of those that have jobs, and may do one of this type and queue: who has the fewest is
# idle first if it gets no more. One is enough: the others work on.
NEXT_IDLE: Final = """
SELECT id FROM jobqueue_worker
 WHERE remote AND state = 'running' AND lease_until > statement_timestamp()
   AND running > 0 AND job_types ? %(job_type)s
   AND (queues IS NULL OR queues ? %(queue)s)
 ORDER BY running, id
 LIMIT 1
"""

# The columns of a claim, and what the row of its type says.
HELD: Final = f"""
SELECT job.id, job.job_type, job.queue, job.priority, job.data::text, job.attempts,
       job.max_attempts, job.crashes, job.fence, date_part('epoch', job.run_after),
       date_part('epoch', job.created_at),
       greatest(0, date_part('epoch', job.started_at - job.run_after)),
       date_part('epoch', job.expires_at - statement_timestamp()),
       job.metadata::text, date_part('epoch', job.timeout), job.backoff::text,
       job.limit_key,
       {RAN}, job.cancel_requested_at IS NOT NULL, type.delivery, type.max_attempts,
       type.max_attempts_override,
       date_part('epoch', coalesce(job.timeout, type.timeout_override, type.timeout)),
       type.sensitive::text
  FROM jobqueue_queuedjob AS job
  JOIN jobqueue_worker AS worker ON worker.id = job.worker_id
  JOIN jobqueue_jobtype AS type ON type.name = job.job_type
 WHERE job.status = 'running' AND job.worker_id = %(worker)s
   AND (%(ids)s::uuid[] IS NULL OR job.id = ANY (%(ids)s))
"""

# A job type whose row names no handler: plain SQL or the API made it, or remote_job.
REMOTE_TYPES: Final = """
SELECT name, delivery FROM jobqueue_jobtype
 WHERE name = ANY (%(names)s::text[]) AND handler = ''
"""


class NewRemoteWorker(NamedTuple):
    """The values with which a remote worker registers."""

    name: str
    owner: str
    release: str
    job_types: Sequence[str]
    queues: Sequence[str] | None
    slots: int
    lease: float  # seconds


class RemoteWorker(NamedTuple):
    """A living remote worker."""

    id: int
    name: str
    release: str
    asked: str  # what an operator asked it to do, or ""
    slots: int
    lease: float  # seconds
    running: int  # jobs that it had when it was renewed last
    job_types: Sequence[str]
    queues: Sequence[str] | None  # None is every queue

    @property
    def is_to_stop(self) -> bool:
        """True if it is to claim nothing more."""
        return self.asked in ("drain", "stop", "restart")


class HeldJob(NamedTuple):
    """A job that a remote worker has, and the policy of its type as the row has it."""

    job: ClaimedJob
    ran: float  # seconds since it was claimed
    is_unwanted: bool  # somebody asked for its cancel
    delivery: str
    declared_attempts: int | None
    attempts_override: int | None
    timeout: float | None  # seconds; 0 and None are none
    sensitive: Sequence[str]

    @property
    def waited(self) -> float:
        """Seconds from due to claimed."""
        return self.job.waited


def register(db: Database, new: NewRemoteWorker) -> int | None:
    """Write the row of a remote worker; None if its owner has too many."""
    params: dict[str, Any] = new._asdict()
    params["job_types"] = json.dumps(list(new.job_types))
    params["queues"] = None if new.queues is None else json.dumps(list(new.queues))
    rows = db.fetch(REGISTER, params)
    return int(rows[0][0]) if rows else None


def renew(db: Database, id: int, owner: str) -> RemoteWorker | None:
    """Renew its lease; None if this owner has no such worker, or not any more."""
    return _worker(db.fetch(RENEW, {"id": id, "owner": owner}))


def find(db: Database, id: int, owner: str) -> RemoteWorker | None:
    """The worker as it is; None as for ``renew``."""
    return _worker(db.fetch(FIND, {"id": id, "owner": owner}))


def lock_slots(db: Database, worker: RemoteWorker) -> int | None:
    """Lock the worker in this transaction; return how many slots it has left, or None
    if it was given up. Beside a job that must run alone there are none."""
    if not db.fetch(LOCK, {"id": worker.id}):
        return None
    # By a statement that is younger than the lock.
    ((count, is_alone),) = db.fetch(HELD_COUNT, {"id": worker.id})
    return 0 if is_alone else max(0, worker.slots - int(count))


def end(db: Database, id: int, owner: str, *, how: str) -> str | None:
    """Record that it has ended; return its name, or None if it does not live."""
    rows = db.fetch(END, {"id": id, "owner": owner, "end": how})
    return str(rows[0][0]) if rows else None


def has_rescuer(db: Database) -> bool:
    """True if some process lives that rescues the jobs of dead workers."""
    return bool(db.fetch(RESCUERS)[0][0])


def held(db: Database, worker: int, ids: Sequence[UUID] | None = None) -> list[HeldJob]:
    """The jobs that this worker has, of these ids if they are given."""
    params = {"worker": worker, "ids": None if ids is None else list(ids)}
    width = len(ClaimedJob._fields)
    return [
        HeldJob._make((ClaimedJob._make(row[:width]), *row[width:-1], _texts(row[-1])))
        for row in db.fetch(HELD, params)
    ]


def next_idle(db: Database, lane: Lane) -> int | None:
    """Which worker is to finish what it has, and take nothing more, so that it can do a
    job of this lane that must run alone; None if all that could do it are idle."""
    wanted = {"job_type": lane.job_type, "queue": lane.queue}
    rows = db.fetch(NEXT_IDLE, wanted)
    return int(rows[0][0]) if rows else None


def remote_types(db: Database, names: Sequence[str]) -> dict[str, str]:
    """Which of these job types remote workers may do, and how each is delivered."""
    return dict(db.fetch(REMOTE_TYPES, {"names": list(names)}))


def _worker(rows: Sequence[tuple[Any, ...]]) -> RemoteWorker | None:
    if not rows:
        return None
    worker = RemoteWorker._make(rows[0])
    *_, job_types, queues = rows[0]
    among = None if queues is None else _texts(queues)
    return worker._replace(job_types=_texts(job_types), queues=among)


def _texts(text: str | None) -> list[str]:
    values = read_json(text or "[]")
    return [str(value) for value in values] if isinstance(values, list) else []
