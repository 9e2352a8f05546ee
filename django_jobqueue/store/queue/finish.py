"""Finish: running → archived as succeeded, with the fence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.store.columns import MOVED, MOVED_OF_JOB
from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import (
    PreparedStatement,
    array_of_ids,
    array_of_numbers,
)

# Sent twice, the second time changes nothing: the row is gone, or its fence is another.
# Only a running job has a worker. There is no `status = 'running'` and no constant in
# the condition on the worker: from either the planner may conclude that next to no row
# is meant. The jobs are found by their ids, and joined with the outcomes by a hash (see
# FINISHING in store/session.py): a plan that was made for an empty table and
# compares each job with each outcome takes 8 s for 1,000 of them; this one has no
# other way, and takes 7 % less than a lookup for each.
SUCCEED: Final = PreparedStatement(f"""
WITH outcome AS MATERIALIZED (
  SELECT given.*, %(worker_id)s::bigint AS worker_id
    FROM ROWS FROM (
           unnest(%(ids)s::uuid[], %(fences)s::bigint[], %(ran)s::bigint[],
                  %(ago)s::bigint[]),
           jsonb_array_elements(%(results)s::jsonb))
         AS given (id, fence, ran, ago, result)
), gone AS (
  DELETE FROM jobqueue_queuedjob AS job
   USING outcome
   WHERE job.id = ANY (%(ids)s::uuid[])
     AND job.id = outcome.id AND job.fence = outcome.fence
     AND job.worker_id = outcome.worker_id
  RETURNING {MOVED_OF_JOB}, job.attempts, job.crashes, outcome.ran, outcome.result,
            statement_timestamp() - outcome.ago * interval '1 microsecond'
            AS finished_at
), archived AS (
  INSERT INTO jobqueue_archivedjob (
         {MOVED}, attempts, crashes, status, started_at, finished_at, wait_ms, run_ms,
         worker, release, result)
  SELECT {MOVED}, attempts, crashes, 'succeeded',
         finished_at - ran * interval '1 microsecond', finished_at,
         greatest(0, date_part('epoch', finished_at - run_after) * 1e3::float8
                     - ran / 1e3::float8),
         ran / 1e3::float8, %(worker)s, %(release)s, nullif(result, 'null')
    FROM gone
)
SELECT id FROM outcome WHERE id NOT IN (SELECT id FROM gone)
""")

_BY_ID = attrgetter("id.int")


class Holder(NamedTuple):
    """The worker that claimed the jobs, and finishes them."""

    worker_id: int
    name: str  # host:pid
    release: str


@dataclass(slots=True)
class Finished:
    """A claim and what came of it."""

    id: UUID
    fence: int
    outcome: Outcome
    ran: float  # seconds that the attempt took
    ended: float  # time.monotonic() at its end
    log_tail: str = ""  # the last lines of an attempt that did not succeed
    max_attempts: int | None = None  # the limit that applied to it; None is unlimited


def succeed(
    db: Database, holder: Holder, finished: Sequence[Finished], now: float
) -> set[UUID]:
    """Archive these as succeeded; return the ids of those whose fence was wrong.

    Raises UniqueViolation, and does nothing, if one of the ids is archived already.
    ``now`` is time.monotonic(); an end time is sent as an age, so the host's clock does
    not matter. The rows are locked in the order of their ids, as by whoever cancels
    many, so that the two do not deadlock.
    """
    finished = _in_order(finished)
    rows = db.fetch(
        SUCCEED,
        {
            **holder_params(holder),
            "ids": array_of_ids([f.id for f in finished]),
            "fences": array_of_numbers([f.fence for f in finished]),
            "ran": array_of_numbers([int(f.ran * 1e6) for f in finished]),
            "ago": array_of_numbers([int((now - f.ended) * 1e6) for f in finished]),
            "results": f"[{','.join([f.outcome.result or 'null' for f in finished])}]",
        },
    )
    return {id for (id,) in rows}


def _in_order(finished: Sequence[Finished]) -> Sequence[Finished]:
    """By id. Mostly they are so already, which is found out in half the time."""
    ids = [f.id.int for f in finished]
    return finished if ids == sorted(ids) else sorted(finished, key=_BY_ID)


def holder_params(holder: Holder) -> dict[str, Any]:
    """Of the statements that finish its jobs."""
    return {
        "worker_id": holder.worker_id,
        "worker": holder.name,
        "release": holder.release,
    }
