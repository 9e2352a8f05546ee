"""Counts the states of the jobs that a bulk operation created."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.time_budget import in_time

CAP: Final = 50_000  # jobs of each table, and no further
BUDGET: Final = 300  # milliseconds

# By the partial indexes on bulk_operation_id.
OUTCOME: Final = """
SELECT true, status, count(*)
  FROM (SELECT status FROM jobqueue_archivedjob
         WHERE bulk_operation_id = %(id)s
         LIMIT %(cap)s) AS over
 GROUP BY status
UNION ALL
SELECT false, waiting, count(*)
  FROM (SELECT CASE WHEN status = 'running' THEN 'running'
                    WHEN attempts > 0 THEN 'retrying' ELSE 'waiting' END AS waiting
          FROM jobqueue_queuedjob
         WHERE bulk_operation_id = %(id)s
         LIMIT %(cap)s) AS open
 GROUP BY waiting
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of the created jobs by state: succeeded, failed, waiting …"""

    counts: dict[str, int]
    capped: frozenset[str] = frozenset()  # states of which there may be more


def outcome(db: DjangoDatabase, id: UUID) -> Outcome | None:
    """Count the jobs that this operation created by state; None if that takes too
    long."""
    params = {"id": id, "cap": CAP + 1}
    rows = in_time(db, BUDGET, lambda: db.fetch(OUTCOME, params))
    if rows is None:
        return None
    sums = Counter({True: 0, False: 0})
    for is_over, _, count in rows:
        sums[is_over] += count
    # Of a table that was not read to its end every count is one of at least so many.
    capped = frozenset(state for is_over, state, _ in rows if sums[is_over] > CAP)
    return Outcome({state: count for _, state, count in rows}, capped)
