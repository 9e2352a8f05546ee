"""A look at the lanes: which have jobs, and when the first of each is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.rows import Lane

# Before and after every lane. The columns have the collation "C", so the index has
# Python's order of strings.
FIRST: Final = Lane("", -1_000, "")
LAST: Final = Lane(chr(0x10FFFF), 1_000, chr(0x10FFFF))

# The index ranges between `lane` and the upper end of `gap`, in order. Each has exact
# ends, so that neither a backlog nor the dead entries that a long-open snapshot leaves
# are walked; those that cannot hold anything are not even begun. One comparison of
# whole rows would say the same, but before PostgreSQL 18 an index scan does not end at
# one whose first columns are equal.
_RANGES: Final = (
    f"""
               job.queue = lane.queue AND job.priority = lane.priority
               AND job.job_type > lane.job_type
               AND job.job_type < CASE WHEN gap.to_queue = lane.queue
                                        AND gap.to_priority = lane.priority
                                       THEN gap.to_type ELSE '{LAST.job_type}' END""",
    f"""
               job.queue = lane.queue AND job.priority > lane.priority
               AND job.priority < CASE WHEN gap.to_queue = lane.queue
                                       THEN gap.to_priority
                                       ELSE {LAST.priority} END""",
    """
               job.queue > lane.queue AND job.queue < gap.to_queue""",
    """
               gap.to_queue > lane.queue
               AND job.queue = gap.to_queue AND job.priority < gap.to_priority""",
    """
               (gap.to_queue, gap.to_priority) > (lane.queue, lane.priority)
               AND job.queue = gap.to_queue AND job.priority = gap.to_priority
               AND job.job_type < gap.to_type""",
)
_FIRST_IN_RANGE: Final = """
            (SELECT job.queue, job.priority, job.job_type
               FROM jobqueue_queuedjob AS job
              WHERE job.status = 'queued' AND NOT job.alone AND {range}
              ORDER BY job.queue, job.priority, job.job_type
              LIMIT 1)"""
_NEXT: Final = "\n            UNION ALL".join(
    _FIRST_IN_RANGE.format(range=range) for range in _RANGES
)

# Looks only into the gaps between the lanes already known, both ends open: one probe a
# gap, and one for each new lane.
FIND_LANES: Final = f"""
SELECT found.queue, found.priority, found.job_type
  FROM unnest(%(from_queue)s::text[], %(from_priority)s::smallint[],
              %(from_type)s::text[], %(to_queue)s::text[], %(to_priority)s::smallint[],
              %(to_type)s::text[])
       AS gap (from_queue, from_priority, from_type, to_queue, to_priority, to_type),
       LATERAL (
         WITH RECURSIVE lane AS (
           SELECT gap.from_queue COLLATE "C" AS queue, gap.from_priority AS priority,
                  gap.from_type COLLATE "C" AS job_type, false AS is_found
           UNION ALL
           SELECT step.queue, step.priority, step.job_type, true
             FROM lane,
                  LATERAL ({_NEXT}
                   LIMIT 1) AS step)
         SELECT lane.queue, lane.priority, lane.job_type FROM lane WHERE is_found
       ) AS found
"""

# When the first job of each known lane is due: one index entry each.
HEADS: Final = """
SELECT lane.queue, lane.priority, lane.job_type,
       extract(epoch FROM head.run_after - clock_timestamp())::float8
  FROM unnest(%(queues)s::text[], %(priorities)s::smallint[], %(job_types)s::text[])
       AS lane (queue, priority, job_type),
       LATERAL (
         SELECT job.run_after
           FROM jobqueue_queuedjob AS job
          WHERE job.status = 'queued' AND NOT job.alone
            AND job.queue = lane.queue AND job.priority = lane.priority
            AND job.job_type = lane.job_type
          ORDER BY job.run_after, job.id
          LIMIT 1) AS head
"""

LOOK: Final = f"""
SELECT queue, priority, job_type, NULL::float8 FROM ({FIND_LANES}) AS found
UNION ALL
SELECT queue, priority, job_type, due_in
  FROM ({HEADS}) AS heads (queue, priority, job_type, due_in)
"""

# One index probe a queue, however many lanes it has.
QUEUES: Final = """
WITH RECURSIVE lane AS (
  (SELECT job.queue
     FROM jobqueue_queuedjob AS job
    WHERE job.status = 'queued' AND NOT job.alone
    ORDER BY job.queue
    LIMIT 1)
  UNION ALL
  SELECT (SELECT job.queue
            FROM jobqueue_queuedjob AS job
           WHERE job.status = 'queued' AND NOT job.alone AND job.queue > lane.queue
           ORDER BY job.queue
           LIMIT 1)
    FROM lane
   WHERE lane.queue IS NOT NULL)
SELECT queue FROM lane WHERE queue IS NOT NULL
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What there is to do: lanes not known before, and when each known one is due."""

    new: list[Lane]
    due_in: dict[Lane, float]  # seconds; not positive: due now; empty lanes are missing


def look(db: Database, known: Sequence[Lane]) -> Look:
    """Look at all lanes, in one statement."""
    ordered = sorted(known)
    lower, upper = [FIRST, *ordered], [*ordered, LAST]
    rows = db.fetch(
        LOOK,
        {
            "from_queue": [lane.queue for lane in lower],
            "from_priority": [lane.priority for lane in lower],
            "from_type": [lane.job_type for lane in lower],
            "to_queue": [lane.queue for lane in upper],
            "to_priority": [lane.priority for lane in upper],
            "to_type": [lane.job_type for lane in upper],
            "queues": [lane.queue for lane in ordered],
            "priorities": [lane.priority for lane in ordered],
            "job_types": [lane.job_type for lane in ordered],
        },
    )
    return Look(
        new=[Lane(q, p, t) for q, p, t, seconds in rows if seconds is None],
        due_in={Lane(q, p, t): s for q, p, t, s in rows if s is not None},
    )


def queues(db: Database) -> list[str]:
    """The queues that jobs wait in."""
    return [queue for (queue,) in db.fetch(QUEUES)]
