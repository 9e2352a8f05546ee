"""Claim one job that must run in a process of its own, and say when there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import Database
from django_jobqueue.store.errors import is_refusal
from django_jobqueue.store.queue import buckets, job_weights
from django_jobqueue.store.queue.claim import CLAIMED, OPEN
from django_jobqueue.store.queue.claim_limited import (
    LOCK_TYPE,
    ROOM,
    RUNNING_OF_KEY,
    WITHIN_LIMIT,
)
from django_jobqueue.store.queue.lanes import Head
from django_jobqueue.store.rows import ClaimedJob, Lane, claimed_jobs

# What an operator says of one key goes before what is said of all; -1 is unlimited.
NUMBER_OF_KEY: Final = """
coalesce((SELECT said.concurrency FROM jobqueue_keyoverride AS said
           WHERE said.limit_key = {key}),
         {of_all})
"""
_KEY_HAS_ROOM = f"""
     AND coalesce(lane.limit_key IS NULL OR (
           SELECT of_key.most = -1
                  OR of_key.most > {RUNNING_OF_KEY.format(key="lane.limit_key")}
             FROM (SELECT {
    NUMBER_OF_KEY.format(
        key="lane.limit_key",
        of_all="held.concurrency_override, held.concurrency",
    )
} AS most
                     FROM jobqueue_jobtype AS type, jobqueue_keylimit AS held
                    WHERE type.name = lane.job_type AND held.name = type.limit_name)
                  AS of_key), true)
"""
_ROOM_FOR_ONE = ROOM.format(limit="1", job_type="lane.job_type")

# These are few, so there are no lanes.
_PICK_QUARANTINED = """
       SELECT lane.ctid
         FROM jobqueue_queuedjob AS lane
        WHERE lane.status = 'queued' AND lane.quarantined
          AND lane.job_type = %(job_type)s
          AND (%(queues)s::text[] IS NULL OR lane.queue = ANY (%(queues)s))
          AND lane.run_after <= statement_timestamp()
          AND (lane.expires_at IS NULL OR lane.expires_at > statement_timestamp())
          AND {condition}
        ORDER BY lane.priority DESC, lane.run_after, lane.id
        LIMIT {limit}
          FOR UPDATE SKIP LOCKED
"""

# Rates are kept unless the caller's time does not pass.
_TYPE_RATE = buckets.of_type("lane.job_type")
_KEY_RATE = buckets.of_key("lane.job_type", "lane.limit_key")


def _rates_have_room(of_type: str, of_key: str) -> str:
    """SQL: true if a job that counts with these weights may start now."""
    return f"""
     AND coalesce(NOT %(keeps_rates)s OR {_TYPE_RATE.has_room_for(of_type)}, true)
     AND coalesce(NOT %(keeps_rates)s OR lane.limit_key IS NULL
                  OR {_KEY_RATE.has_room_for(of_key)}, true)
"""


CLAIM_QUARANTINED: Final = job_weights.spending(
    CLAIMED.format(
        pick=_PICK_QUARANTINED.format(
            condition=OPEN
            + _KEY_HAS_ROOM
            + _rates_have_room(job_weights.of_type("lane"), job_weights.of_key("lane")),
            limit=WITHIN_LIMIT,
        )
    )
)

# The limit by key is locked first, as by every claim.
LOCK_LIMIT_OF_TYPE: Final = """
SELECT held.name FROM jobqueue_jobtype AS type, jobqueue_keylimit AS held
 WHERE type.name = %(job_type)s AND held.name = type.limit_name
   FOR NO KEY UPDATE OF held
"""
ADOPT_QUARANTINED: Final = """
UPDATE jobqueue_queuedjob AS job
   SET limit_key = jobqueue_limit_key(type.limit_rule, job.data)
  FROM jobqueue_jobtype AS type
 WHERE type.name = %(job_type)s AND type.limit_rule IS NOT NULL
   AND job.ctid = ANY (ARRAY (
         SELECT free.ctid FROM jobqueue_queuedjob AS free
          WHERE free.status = 'queued' AND free.quarantined
            AND free.job_type = %(job_type)s AND free.limit_key IS NULL
            FOR UPDATE SKIP LOCKED))
RETURNING job.id
"""
_QUARANTINED = (LOCK_LIMIT_OF_TYPE, LOCK_TYPE, ADOPT_QUARANTINED, CLAIM_QUARANTINED)

QUARANTINED_TYPES: Final = """
SELECT job.job_type
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'queued' AND job.quarantined
   AND job.run_after <= statement_timestamp()
   AND job.job_type = ANY (%(job_types)s)
   AND (%(queues)s::text[] IS NULL OR job.queue = ANY (%(queues)s))
 GROUP BY job.job_type
 ORDER BY max(job.priority) DESC, min(job.run_after)
"""

# When a claim of one of these would find something: by the claim's own conditions, so
# that no process is forked for a job that is paused, or at the limit or the rate of its
# type. What holds such a job back may end any moment.
_WAITING_QUARANTINED = f"""
       (SELECT lane.queue, lane.priority, lane.job_type, lane.run_after,
               date_part('epoch', lane.run_after - statement_timestamp()) AS due_in,
               lane.run_after <= statement_timestamp() AS is_due,
               {OPEN} {_KEY_HAS_ROOM} {_rates_have_room("lane.of_type", "lane.of_key")}
               AND {_ROOM_FOR_ONE} > 0 AS may_run
          FROM (SELECT job.queue, job.priority, job.job_type, job.limit_key,
                       {job_weights.OF_TYPES}, min(job.run_after) AS run_after
                  FROM jobqueue_queuedjob AS job
                 WHERE job.status = 'queued' AND job.quarantined
                   AND job.job_type = ANY (%(job_types)s)
                   AND (job.expires_at IS NULL
                        OR job.expires_at > greatest(job.run_after,
                                                     statement_timestamp()))
                   AND (%(queues)s::text[] IS NULL OR job.queue = ANY (%(queues)s))
                 GROUP BY job.queue, job.priority, job.job_type, job.limit_key,
                          of_type, of_key) AS lane) AS waiting
"""
NEXT_QUARANTINED: Final = f"""
SELECT min(CASE WHEN NOT is_due THEN due_in WHEN may_run THEN 0 END),
       coalesce(bool_or(is_due AND NOT may_run), false)
  FROM {_WAITING_QUARANTINED}
"""
QUARANTINED_LANES: Final = f"""
SELECT queue, priority, job_type, min(run_after)
  FROM {_WAITING_QUARANTINED}
 WHERE is_due AND may_run
 GROUP BY queue, priority, job_type
"""


class NextQuarantined(NamedTuple):
    """When a job that must run alone may be claimed."""

    due_in: float | None  # seconds; 0 is now, None is never, as far as can be seen
    is_held_back: bool  # one is due, but paused, or its type is at its limit


def claim_quarantined(
    db: Database,
    worker: int,
    job_types: Sequence[str],
    queues: Sequence[str] | None,
    *,
    keeps_rates: bool = True,
) -> list[ClaimedJob]:
    """Claim one job that must run in a process of its own, the most urgent first. A
    type that is locked, or whose jobs the database refuses, keeps no other one."""
    wanted = quarantine_params(job_types, queues, keeps_rates=keeps_rates)
    error_left: Exception | None = None
    for (job_type,) in db.fetch(QUARANTINED_TYPES, wanted):
        params = {**wanted, "worker": worker, "limit": 1, "job_type": job_type}
        try:
            rows = db.fetch_all([(one, params) for one in _QUARANTINED])[-1]
        except (psycopg.Error, StoreUnavailable) as error:
            if not is_refusal(error):
                raise
            error_left = error
            continue
        if rows:
            return claimed_jobs(rows)
    if error_left is not None:
        raise error_left
    return []


def next_quarantined(
    db: Database,
    job_types: Sequence[str],
    queues: Sequence[str] | None,
    *,
    keeps_rates: bool = True,
) -> NextQuarantined:
    """When ``claim_quarantined`` with these job types and queues may find a job."""
    params = quarantine_params(job_types, queues, keeps_rates=keeps_rates)
    return NextQuarantined(*db.fetch(NEXT_QUARANTINED, params)[0])


def quarantined_lanes(
    db: Database,
    job_types: Sequence[str],
    queues: Sequence[str] | None,
    *,
    keeps_rates: bool = True,
) -> list[Head]:
    """The lanes with jobs that must run alone, and that ``claim_quarantined`` may find
    now."""
    params = quarantine_params(job_types, queues, keeps_rates=keeps_rates)
    if not db.fetch(QUARANTINED_TYPES, params):  # as nearly always, and sooner known
        return []
    return [
        Head(Lane(queue, priority, job_type), 0.0, (run_after, UUID(int=0)))
        for queue, priority, job_type, run_after in db.fetch(QUARANTINED_LANES, params)
    ]


def quarantine_params(
    job_types: Sequence[str], queues: Sequence[str] | None, *, keeps_rates: bool = True
) -> dict[str, Any]:
    """Parameters of NEXT_QUARANTINED, QUARANTINED_LANES and QUARANTINED_TYPES."""
    among = None if queues is None else list(queues)
    return {"job_types": list(job_types), "queues": among, "keeps_rates": keeps_rates}
