"""Stores the rows of workers: registered by the worker, renewed by its host."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.notify import News

MOMENT: Final = 0.1  # seconds that a renewal waits for a worker's locked row

REGISTER: Final = """
INSERT INTO jobqueue_worker (
       name, host, pid, identity, supervisor, release, queues, job_types, threads,
       async_slots, versions, lease_until)
VALUES (%(name)s, %(host)s, %(pid)s, %(identity)s, %(supervisor)s, %(release)s,
        %(queues)s::jsonb, %(job_types)s::jsonb, %(threads)s, %(async_slots)s,
        %(versions)s::jsonb, clock_timestamp() + %(lease)s * interval '1 second')
RETURNING id
"""

LEARNT: Final = """
UPDATE jobqueue_worker SET job_types = %(job_types)s::jsonb WHERE id = %(id)s
"""

# One statement for all workers of a host, by the database's clock. A worker that was
# given up is not renewed, and so learns that it was. What operators ask comes along.
# A row that somebody has locked holds up no other one: it is returned as locked.
RENEW: Final = """
WITH free AS MATERIALIZED (
  SELECT id FROM jobqueue_worker
   WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
     FOR NO KEY UPDATE {wait}
), renewed AS (
  UPDATE jobqueue_worker AS worker
     SET renewed_at = clock_timestamp(),
         lease_until = clock_timestamp() + %(lease)s * interval '1 second',
         running = beat.running, rss = beat.rss,
         state = CASE WHEN beat.draining THEN 'draining' ELSE 'running' END,
         request = CASE WHEN worker.request ? 'asked_at'
                         AND NOT worker.request ? 'heard_at'
                        THEN worker.request
                             || jsonb_build_object('heard_at', clock_timestamp())
                        ELSE worker.request END
    FROM free
    JOIN unnest(%(ids)s::bigint[], %(running)s::integer[], %(rss)s::bigint[],
                %(draining)s::boolean[]) AS beat (id, running, rss, draining)
         ON beat.id = free.id
   WHERE worker.id = free.id
  RETURNING worker.id, worker.desired,
            coalesce((worker.request ->> 'stack_request')::bigint, 0) AS stack_request
)
SELECT id, desired, stack_request, false FROM renewed
UNION ALL
SELECT id, '', 0, true FROM jobqueue_worker
 WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
   AND id NOT IN (SELECT id FROM free)
"""
RENEW_FREE: Final = RENEW.format(wait="SKIP LOCKED")
RENEW_WAITING: Final = RENEW.format(wait="")

STOPPED: Final = """
UPDATE jobqueue_worker
   SET state = %(state)s, stopped_at = clock_timestamp(), listening = false,
       running = 0, "end" = %(end)s
 WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
"""

HAVE_STOPPED: Final = """
SELECT id FROM jobqueue_worker WHERE id = ANY (%(ids)s::bigint[]) AND state = 'stopped'
"""

# The lease is looked at again under the row's lock, so a renewal that comes first wins.
# Not by the clock of this moment: it may have been set since somebody looked at it.
# A row that somebody has locked keeps no other; it is looked at again.
GIVE_UP: Final = """
WITH lapsed AS MATERIALIZED (
  SELECT id, state = 'draining' AS was_draining FROM jobqueue_worker
   WHERE state IN ('running', 'draining')
     AND lease_until < least(to_timestamp(%(seen)s::float8), clock_timestamp())
     FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobqueue_worker AS worker
   SET state = 'lost', stopped_at = clock_timestamp(), listening = false, running = 0,
       "end" = 'its lease lapsed'
  FROM lapsed
 WHERE worker.id = lapsed.id
RETURNING worker.id, worker.name, lapsed.was_draining
"""

NEXT_LAPSE: Final = """
SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float8,
       coalesce(bool_or(renewed_at > clock_timestamp() + interval '1 second'), false),
       extract(epoch FROM clock_timestamp())::float8,
       coalesce(max(lease_seconds), 0)::float8
  FROM jobqueue_worker
 WHERE state IN ('running', 'draining')
"""

# Leases that were granted before the clock was set back hold as long as they were to.
# Whoever is alive renews its own anyway.
SHORTEN: Final = """
UPDATE jobqueue_worker
   SET renewed_at = clock_timestamp(),
       lease_until = clock_timestamp() + (lease_until - renewed_at)
 WHERE state IN ('running', 'draining')
   AND renewed_at > clock_timestamp() + interval '1 second'
"""

# Running jobs of workers that are not alive: what a rescue was interrupted at, and
# claims that a worker committed after it had been given up. Endpoints are never alive,
# and keep what was handed over to them. So do moves: the next one goes on with it.
STRAYS: Final = """
SELECT DISTINCT job.worker_id
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'running'
   AND NOT EXISTS (SELECT FROM jobqueue_worker AS worker
                    WHERE worker.id = job.worker_id
                      AND worker.state IN ('running', 'draining', 'endpoint',
                                           'moving'))
"""

PREDECESSORS: Final = """
SELECT id, name, state = 'draining', identity FROM jobqueue_worker
 WHERE host = %(host)s AND state IN ('running', 'draining')
"""

RESCUED: Final = """
UPDATE jobqueue_worker SET rescued = %(counts)s::jsonb WHERE id = %(id)s
"""

LISTENING: Final = """
UPDATE jobqueue_worker SET listening = %(listening)s WHERE id = %(id)s
"""

ALIVE: Final = """
SELECT id FROM jobqueue_worker
 WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
"""

ASK: Final = f"""
UPDATE jobqueue_worker
   SET desired = %(desired)s,
       request = coalesce(request, '{{}}') - 'heard_at'
                 || jsonb_build_object('asked_at', clock_timestamp())
 WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
RETURNING id, pg_notify('jobqueue', '{News.CONTROL.prefix}' || id)
"""

# A stack request is a number, greater than those before.
REQUEST_STACK_DUMPS: Final = f"""
UPDATE jobqueue_worker
   SET request = coalesce(request, '{{}}')
                 || jsonb_build_object(
                      'stack_request',
                      (extract(epoch FROM clock_timestamp()) * 1e6)::bigint,
                      'stack_requested_at', clock_timestamp())
 WHERE id = ANY (%(ids)s::bigint[]) AND state IN ('running', 'draining')
RETURNING id, pg_notify('jobqueue', '{News.CONTROL.prefix}' || id)
"""

STORE_STACK_DUMP: Final = """
UPDATE jobqueue_worker
   SET stack_dump = %(content)s::jsonb || jsonb_build_object('at', clock_timestamp())
 WHERE id = %(id)s
"""

FORGET: Final = """
DELETE FROM jobqueue_worker
 WHERE state IN ('stopped', 'lost')
   AND stopped_at < clock_timestamp() - interval '1 day'
"""


class NewWorker(NamedTuple):
    """The values with which a worker registers."""

    name: str  # host:pid
    host: str
    pid: int
    identity: str
    supervisor: str
    release: str
    queues: Sequence[str] | None
    job_types: Sequence[str]
    threads: int
    async_slots: int
    versions: Mapping[str, str]


class Beat(NamedTuple):
    """The state of a living worker that is written when its lease is renewed."""

    id: int
    running: int
    rss: int  # bytes
    draining: bool


class NextLapse(NamedTuple):
    """When the first lease lapses, by the database's clock."""

    due_in: float | None  # seconds, unless it is renewed; None if there is no lease
    was_set_back: bool  # some lease was granted at a moment that is still to come
    clock: float  # seconds since 1970
    longest_lease: float  # seconds; of remote workers, which renew their own


class LostWorker(NamedTuple):
    """A worker whose process is gone, or was not heard of for a lease."""

    id: int
    name: str
    was_draining: bool  # it was asked to stop: its jobs were cut off, and did not crash


class Asked(NamedTuple):
    """An operator's request to a worker."""

    desired: str  # what it is to do, or ""
    stack_request: int  # the number of the last request for a stack dump, or 0


def register(db: Database, new: NewWorker, lease: float) -> int:
    """Write the row of a worker that starts; return its id, which is never reused."""
    params: dict[str, Any] = new._asdict()
    params |= {
        "queues": None if new.queues is None else json.dumps(list(new.queues)),
        "job_types": json.dumps(list(new.job_types)),
        "versions": json.dumps(dict(new.versions)),
        "lease": lease,
    }
    worker: int = db.fetch(REGISTER, params)[0][0]
    return worker


def learnt(db: Database, worker: int, job_types: Sequence[str]) -> None:
    """Write that this worker runs these job types by now."""
    db.run(LEARNT, {"id": worker, "job_types": json.dumps(list(job_types))})


def renew(
    db: OwnConnection, beats: Sequence[Beat], lease: float
) -> dict[int, Asked | None]:
    """Renew the leases of these; return what each renewed one is asked, and None for
    each that is alive and could not be renewed, since somebody has locked its row.

    A row that is locked is waited for, but only for a moment: it may be the worker
    itself that is writing to it.
    """
    renewed = _renew(db, RENEW_FREE, beats, lease)
    for beat in [beat for beat in beats if renewed.get(beat.id, beat) is None]:
        with suppress(StoreUnavailable), db.patience(MOMENT):
            answers = _renew(db, RENEW_WAITING, [beat], lease)
            del renewed[beat.id]
            renewed |= answers
    return renewed


def have_stopped(db: Database, ids: Sequence[int]) -> set[int]:
    """Those of these workers that ended in good order."""
    return {id for (id,) in db.fetch(HAVE_STOPPED, {"ids": list(ids)})}


def _renew(
    db: Database, statement: str, beats: Sequence[Beat], lease: float
) -> dict[int, Asked | None]:
    rows = db.fetch(
        statement,
        {
            "ids": [beat.id for beat in beats],
            "running": [beat.running for beat in beats],
            "rss": [beat.rss for beat in beats],
            "draining": [beat.draining for beat in beats],
            "lease": lease,
        },
    )
    return {id: None if locked else Asked(*asked) for id, *asked, locked in rows}


def stopped(db: Database, ids: Sequence[int], *, end: str, lost: bool = False) -> None:
    """Record that these workers have ended, and how."""
    state = "lost" if lost else "stopped"
    db.run(STOPPED, {"ids": list(ids), "end": end, "state": state})


def record_rescued(db: Database, worker: int, counts: Mapping[str, int]) -> None:
    """Record how many jobs of an ended worker became ``queued``, ``failed`` or
    ``cancelled``."""
    db.run(RESCUED, {"id": worker, "counts": json.dumps(dict(counts))})


def give_up(db: Database, seen: float | None = None) -> list[LostWorker]:
    """Give up the workers whose lease lapsed; return them.

    ``seen`` is the database's clock, in seconds since 1970, as somebody saw it who
    judged it; without it, it is that of this moment.
    """
    return [LostWorker(*row) for row in db.fetch(GIVE_UP, {"seen": seen})]


def next_lapse(db: Database) -> NextLapse:
    """When the first lease of a living worker lapses."""
    return NextLapse(*db.fetch(NEXT_LAPSE)[0])


def shorten(db: Database) -> None:
    """Let leases from before the clock was set back count from now."""
    db.run(SHORTEN)


def strays(db: Database) -> list[int]:
    """Ids of workers that hold running jobs and are not alive."""
    return [row[0] for row in db.fetch(STRAYS)]


def predecessors(db: Database, host: str) -> list[tuple[LostWorker, str]]:
    """The workers of this host that count as alive, with their identities."""
    rows = db.fetch(PREDECESSORS, {"host": host})
    return [(LostWorker(*worker), identity) for *worker, identity in rows]


def set_listening(db: Database, worker: int, listening: bool) -> None:
    """Say whether this worker wants to be notified of new jobs."""
    db.run(LISTENING, {"id": worker, "listening": listening})


def alive(db: Database, ids: Sequence[int]) -> list[int]:
    """The living workers among these."""
    return [row[0] for row in db.fetch(ALIVE, {"ids": list(ids)})]


def ask(db: Database, ids: Sequence[int], desired: str) -> list[int]:
    """Ask these workers for something; return those that are alive to hear it."""
    return [row[0] for row in db.fetch(ASK, {"ids": list(ids), "desired": desired})]


def request_stack_dumps(db: Database, ids: Sequence[int]) -> list[int]:
    """Request stack dumps of these workers; return those that are alive."""
    return [row[0] for row in db.fetch(REQUEST_STACK_DUMPS, {"ids": list(ids)})]


def store_stack_dump(db: Database, worker: int, content: Mapping[str, Any]) -> None:
    """Store a stack dump in the row of its worker, with the time."""
    db.run(STORE_STACK_DUMP, {"id": worker, "content": json.dumps(content)})


def forget(db: Database) -> None:
    """Delete the rows of workers that ended more than a day ago."""
    db.run(FORGET)
