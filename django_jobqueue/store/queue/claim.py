"""Claim: queued → running, for jobs that this worker can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import Database
from django_jobqueue.store.errors import is_refusal
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.queue import buckets, job_weights
from django_jobqueue.store.queue.lanes import (
    FROM_MARK,
    LANES,
    Head,
    LaneMark,
    mark_params,
)
from django_jobqueue.store.rows import ClaimedJob, Lane, claimed_jobs

# A type without a limit that is not paused, in a queue that is not paused. Scalar
# subqueries, not joins, so that the order of the lanes is kept.
IS_OPEN: Final = """
         coalesce((SELECT NOT (queue.paused AND (queue.resume_at IS NULL
                                   OR queue.resume_at > statement_timestamp()))
                     FROM jobqueue_queue AS queue WHERE queue.name = {queue}), true)
     AND (SELECT NOT (type.paused AND (type.resume_at IS NULL
                          OR type.resume_at > statement_timestamp()))
            FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
OPEN: Final = IS_OPEN.format(queue="lane.queue", job_type="lane.job_type")
# A worker may have read the policies before a limit or a rate was declared, so each
# claim looks itself for those that it does not keep.
WITHOUT_KEYS: Final = """
     AND (SELECT type.limit_name IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""
WITHOUT_WEIGHT: Final = """
     AND (SELECT type.weight_rule IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
_WITHOUT_RATE = f"""
     AND (SELECT type.limit_name IS NULL
                 AND {buckets.IN_FORCE.format(row="type")} IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""
_UNLIMITED = f"""
     AND (SELECT CASE type.concurrency_override WHEN -1 THEN true
                 ELSE coalesce(type.concurrency_override, type.concurrency) IS NULL END
                 AND type.limit_name IS NULL
                 AND {buckets.IN_FORCE.format(row="type")} IS NULL
            FROM jobqueue_jobtype AS type WHERE type.name = lane.job_type)
"""

# An order pins the index of running jobs by key, and the range keeps the planner from
# dropping the order: with the statistics of a table in which nothing ran, it read all
# running jobs for each key (33 ms instead of 3 for a claim of 100).
RUNNING_OF_KEY: Final = """
(SELECT count(*)
   FROM (SELECT FROM jobqueue_queuedjob AS other
          WHERE other.status = 'running' AND other.limit_key >= {key}
            AND other.limit_key <= {key}
          ORDER BY other.limit_key) AS of_key)
"""
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

# Each lane is one index range, read in order and only as far as needed: the lanes are
# the outer side of a nested loop, so the first ones are exhausted before the next is
# touched, and LIMIT ends it. `ctid = ANY(ARRAY(...))` is evaluated once; `id IN
# (subselect)` may lock more rows than the LIMIT (5,000 instead of 10, seen on 15, 16,
# 18).
_PICK = f"""
       SELECT picked.ctid{{picked}}
         FROM {LANES},
              LATERAL (
                SELECT job.ctid{{columns}}
                  FROM jobqueue_queuedjob AS job
                 WHERE job.status = 'queued' AND NOT job.quarantined
                   AND job.queue = lane.queue AND job.priority = lane.priority
                   AND job.job_type = lane.job_type
                   AND job.run_after <= statement_timestamp()
                   AND {FROM_MARK}
                   AND (job.expires_at IS NULL
                        OR job.expires_at > statement_timestamp())
                 ORDER BY job.run_after, job.id
                 LIMIT %(limit)s
                   {{lock}}) AS picked
        WHERE {{condition}}
        LIMIT {{limit}}
"""
LOCK: Final = "FOR UPDATE SKIP LOCKED"


def pick(condition: str, limit: str, *, weight: str = "", lock: str = LOCK) -> str:
    """The jobs of lanes that a claim takes; with what each counts, if that is given."""
    return _PICK.format(
        condition=condition,
        limit=limit,
        picked=weight and ", picked.weight",
        columns=weight and f", {weight} AS weight",
        lock=lock,
    )


# The same for the few jobs that run in a process of their own; few, so no lanes.
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

# Numbers that plain SQL set to the greatest that there is stay there; a fence begins
# again at the least, so that it differs. Else one such row would fail every claim.
CLAIMED: Final = """
UPDATE jobqueue_queuedjob AS job
   SET status = 'running', worker_id = %(worker)s, started_at = statement_timestamp(),
       fence = CASE WHEN job.fence < 9223372036854775807 THEN job.fence + 1
                    ELSE -9223372036854775808 END,
       attempts = least(job.attempts, 2147483646) + 1,
       unique_key = CASE WHEN NOT job.unique_until_started THEN job.unique_key END
 WHERE job.ctid = ANY (ARRAY ({pick}))
RETURNING job.id, job.job_type, job.queue, job.priority, job.data::text, job.attempts,
          job.max_attempts, job.crashes, job.fence, date_part('epoch', job.run_after),
          date_part('epoch', job.created_at),
          date_part('epoch', statement_timestamp() - job.run_after),
          date_part('epoch', job.expires_at - statement_timestamp()),
          job.metadata::text, date_part('epoch', job.timeout), job.backoff::text,
          job.limit_key
"""

CLAIM: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + _UNLIMITED, "%(limit)s"))
)

# An exact limit needs two statements in one transaction: the second one's snapshot must
# be younger than the lock that the first one waited for (one statement: 7 at a limit of
# 5). FOR NO KEY UPDATE, so that enqueues, which lock the row by its key, do not wait.
LOCK_TYPE: Final = PreparedStatement("""
SELECT name FROM jobqueue_jobtype WHERE name = %(job_type)s FOR NO KEY UPDATE
""")
_ROOM = """
       (SELECT greatest(0, least({limit},
                 CASE type.concurrency_override WHEN -1 THEN NULL
                      ELSE coalesce(type.concurrency_override, type.concurrency) END
                 - (SELECT count(*) FROM jobqueue_queuedjob AS other
                     WHERE other.status = 'running' AND other.job_type = type.name)))
          FROM jobqueue_jobtype AS type WHERE type.name = {job_type})
"""
_WITHIN_LIMIT = _ROOM.format(limit="%(limit)s", job_type="%(job_type)s")
_ROOM_FOR_ONE = _ROOM.format(limit="1", job_type="lane.job_type")
CLAIM_LIMITED: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + _WITHOUT_RATE, _WITHIN_LIMIT))
)
# For a caller whose time does not pass.
CLAIM_IGNORING_RATES: Final = PreparedStatement(
    CLAIMED.format(pick=pick(OPEN + WITHOUT_KEYS, _WITHIN_LIMIT))
)
# Rates are kept unless the caller's time does not pass.
_TYPE_RATE = buckets.of_type("lane.job_type")
_KEY_RATE = buckets.of_key("lane.job_type", "lane.limit_key")


def _rates_have_room(of_type: str, of_key: str) -> str:
    """Whether a job that counts with these weights may start now."""
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
            limit=_WITHIN_LIMIT,
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


def claim(
    db: Database, worker: int, lanes: Sequence[LaneMark], limit: int
) -> list[ClaimedJob]:
    """Claim up to ``limit`` jobs from these lanes, exhausting each before the next.

    Lanes of job types that are paused, or have a limit or a rate, give nothing.
    """
    rows = db.fetch(CLAIM, {**mark_params(lanes), "worker": worker, "limit": limit})
    return claimed_jobs(rows)


def claim_limited(
    db: Database,
    worker: int,
    lanes: Sequence[LaneMark],
    limit: int,
    *,
    keeps_rates: bool = True,
) -> list[ClaimedJob]:
    """Claim from lanes that are all of one job type, within its concurrency.

    A type with a rate gives nothing, unless rates are ignored.
    """
    statement = CLAIM_LIMITED if keeps_rates else CLAIM_IGNORING_RATES
    params = {
        **mark_params(lanes),
        "worker": worker,
        "limit": limit,
        "job_type": lanes[0].lane.job_type,
    }
    rows = db.fetch_all([(LOCK_TYPE, params), (statement, params)])[1]
    return claimed_jobs(rows)


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
