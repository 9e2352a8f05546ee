"""What became of the jobs that a bulk operation created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django_jobqueue.store.budget import in_time
from django_jobqueue.store.connection import DjangoDatabase

CAP: Final = 50_000  # jobs of each table, and no further
BUDGET: Final = 300  # milliseconds

# By the partial indexes on bulk_operation_id.
OUTCOME: Final = """
SELECT status, count(*)
  FROM (SELECT status FROM jobqueue_archivedjob
         WHERE bulk_operation_id = %(id)s
         LIMIT %(cap)s) AS over
 GROUP BY status
UNION ALL
SELECT waiting, count(*)
  FROM (SELECT CASE WHEN status = 'running' THEN 'running'
                    WHEN attempts > 0 THEN 'retrying' ELSE 'waiting' END AS waiting
          FROM jobqueue_queuedjob
         WHERE bulk_operation_id = %(id)s
         LIMIT %(cap)s) AS open
 GROUP BY waiting
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many of the created jobs are what: succeeded, failed, waiting …"""

    counts: dict[str, int]
    capped: bool  # there are more than were counted


def outcome(db: DjangoDatabase, id: UUID) -> Outcome | None:
    """What became of the jobs that this operation created; None if the database takes
    too long to say."""
    params = {"id": id, "cap": CAP}
    rows = in_time(db, BUDGET, lambda: db.fetch(OUTCOME, params))
    if rows is None:
        return None
    counts: dict[str, int] = dict(rows)
    return Outcome(counts, any(count >= CAP for count in counts.values()))
