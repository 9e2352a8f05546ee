"""Lanes: which have jobs, where each begins and when that is due, and the marks from
which a claim scans them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.store.connection import Database
from django_jobqueue.store.prepared import (
    PreparedStatement,
    array_of_ids,
    array_of_moments,
    array_of_numbers,
    array_of_texts,
)
from django_jobqueue.store.rows import Lane

Mark = tuple[datetime, UUID]

START: Final[Mark] = (datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))
FRESH: Final = 2.0  # seconds

LANES: Final = """
            unnest(%(queues)s::text[], %(priorities)s::smallint[],
                   %(job_types)s::text[],
                   %(mark_times)s::timestamptz[], %(mark_ids)s::uuid[],
                   %(back_times)s::timestamptz[], %(back_ids)s::uuid[])
            AS lane (queue, priority, job_type, mark_time, mark_id, back_time, back_id)
"""

# From the mark on, and before it what is younger than two seconds, whose transactions
# may commit late; but no farther than ``back``, for two seconds may be 50,000 dead
# entries, 6 ms.
FROM_MARK: Final = """
                   (job.run_after, job.id)
                   >= (greatest(lane.back_time,
                                least(lane.mark_time,
                                      statement_timestamp() - %(fresh)s::interval)),
                       CASE WHEN lane.mark_time
                                 <= statement_timestamp() - %(fresh)s::interval
                            THEN lane.mark_id ELSE lane.back_id END)
"""


class LaneMark(NamedTuple):
    """A lane, and where in it a scan starts: at ``mark``, or before, where jobs are
    fresh, down to ``back``, which is not after it."""

    lane: Lane
    mark: Mark = START
    back: Mark = START


def mark_params(lanes: Sequence[LaneMark]) -> dict[str, Any]:
    """The parameters of the fragments above."""
    return {
        **_lane_params(tuple([m.lane for m in lanes])),
        "mark_times": array_of_moments([m.mark[0] for m in lanes]),
        "mark_ids": array_of_ids([m.mark[1] for m in lanes]),
        "back_times": array_of_moments([m.back[0] for m in lanes]),
        "back_ids": array_of_ids([m.back[1] for m in lanes]),
        "fresh": f"{FRESH} s",
    }


@lru_cache(maxsize=100)
def _lane_params(lanes: tuple[Lane, ...]) -> dict[str, str]:
    """The part that is the same each time: a worker mostly asks the same lanes."""
    return {
        "queues": array_of_texts([lane.queue for lane in lanes]),
        "priorities": array_of_numbers([lane.priority for lane in lanes]),
        "job_types": array_of_texts([lane.job_type for lane in lanes]),
    }


# Before and after every lane. The columns have the collation "C", so the index has
# Python's order of strings.
FIRST: Final = Lane("", -1_000, "")
LAST: Final = Lane(chr(0x10FFFF), 1_000, chr(0x10FFFF))
Range = tuple[Lane, Lane]  # the lanes between these two
EVERYWHERE: Final[Range] = (FIRST, LAST)

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
            (SELECT job.queue, job.priority, job.job_type, job.run_after, job.id
               FROM jobqueue_queuedjob AS job
              WHERE job.status = 'queued' AND NOT job.quarantined AND {range}
              ORDER BY job.queue, job.priority, job.job_type, job.run_after, job.id
              LIMIT 1)"""
_NEXT: Final = "\n            UNION ALL".join(
    _FIRST_IN_RANGE.format(range=range) for range in _RANGES
)

# Looks only into the gaps between the lanes already known, both ends open: one probe a
# gap, and one for each new lane.
_NEW: Final = f"""
SELECT found.*
  FROM unnest(%(from_queue)s::text[], %(from_priority)s::smallint[],
              %(from_type)s::text[], %(to_queue)s::text[], %(to_priority)s::smallint[],
              %(to_type)s::text[])
       AS gap (from_queue, from_priority, from_type, to_queue, to_priority, to_type),
       LATERAL (
         WITH RECURSIVE lane AS (
           SELECT gap.from_queue COLLATE "C" AS queue, gap.from_priority AS priority,
                  gap.from_type COLLATE "C" AS job_type,
                  NULL::timestamptz AS run_after, NULL::uuid AS id
           UNION ALL
           SELECT step.*
             FROM lane,
                  LATERAL ({_NEXT}
                   LIMIT 1) AS step)
         SELECT * FROM lane WHERE id IS NOT NULL
       ) AS found
"""

# The first job of each known lane: one index entry each, from the mark on.
_KNOWN: Final = f"""
SELECT lane.queue, lane.priority, lane.job_type, head.run_after, head.id
  FROM {LANES}
  LEFT JOIN LATERAL (
         SELECT job.run_after, job.id
           FROM jobqueue_queuedjob AS job
          WHERE job.status = 'queued' AND NOT job.quarantined
            AND job.queue = lane.queue AND job.priority = lane.priority
            AND job.job_type = lane.job_type
            AND {FROM_MARK}
          ORDER BY job.run_after, job.id
          LIMIT 1) AS head ON true
"""

# The last two columns are a mark: before it nothing waits. No moment that is not over
# is one: a job may still come before it.
_HEADS: Final = f"""
SELECT queue, priority, job_type,
       extract(epoch FROM run_after - clock_timestamp())::float8,
       least(run_after, statement_timestamp()),
       CASE WHEN run_after <= statement_timestamp() THEN id
            ELSE '{START[1]}'::uuid END
  FROM ({{heads}}) AS head
"""
SCAN: Final = PreparedStatement(
    _HEADS.format(heads=f"{_NEW}\n        UNION ALL {_KNOWN}")
)
PROBE: Final = PreparedStatement(_HEADS.format(heads=_KNOWN))
# The row of no lane has the mark of those that are empty.
FULL_SCAN: Final = PreparedStatement(
    _HEADS.format(
        heads=f"""{_NEW}
        UNION ALL
        SELECT '{LAST.queue}', {LAST.priority}, '{LAST.job_type}', NULL, NULL"""
    )
)

# One index probe a queue, however many lanes it has.
QUEUES: Final = """
WITH RECURSIVE lane AS (
  (SELECT job.queue
     FROM jobqueue_queuedjob AS job
    WHERE job.status = 'queued' AND NOT job.quarantined
    ORDER BY job.queue
    LIMIT 1)
  UNION ALL
  SELECT (SELECT job.queue
            FROM jobqueue_queuedjob AS job
           WHERE job.status = 'queued' AND NOT job.quarantined
             AND job.queue > lane.queue
           ORDER BY job.queue
           LIMIT 1)
    FROM lane
   WHERE lane.queue IS NOT NULL)
SELECT queue FROM lane WHERE queue IS NOT NULL
 UNION
SELECT job.queue
  FROM jobqueue_queuedjob AS job
 WHERE job.status = 'queued' AND job.quarantined
 ORDER BY queue
"""


class Head(NamedTuple):
    """Where a lane begins."""

    lane: Lane
    due_in: float | None  # seconds until its first job is due; None if it is empty
    mark: Mark  # nothing waits before it

    @property
    def is_due(self) -> bool:
        """True if there is a job to run now."""
        return self.due_in is not None and self.due_in <= 0


def of_queues(names: Collection[str] | None) -> tuple[Range, ...]:
    """The lanes of these queues; None is every queue."""
    if names is None:
        return (EVERYWHERE,)
    return tuple(
        (FIRST._replace(queue=name), LAST._replace(queue=name))
        for name in sorted(set(names))
    )


def scan(
    db: Database, known: Sequence[LaneMark], within: Sequence[Range] = (EVERYWHERE,)
) -> list[Head]:
    """Look at all lanes in these ranges, which are apart, at the known ones from their
    marks on, in one statement.

    A known lane that is empty is among the heads as well.
    """
    return _heads(db.fetch(SCAN, _params(known, within)))


def full_scan(
    db: Database, within: Sequence[Range] = (EVERYWHERE,)
) -> tuple[list[Head], Mark]:
    """Look at all lanes that have jobs, from their beginnings, in one statement; and
    the mark of the others. These cost nothing, but for their dead index entries."""
    rows = db.fetch(FULL_SCAN, _gaps([], within))
    heads = {head.lane: head for head in _heads(rows)}
    empty = heads.pop(LAST)
    return [*heads.values()], empty.mark


def probe(db: Database, known: Sequence[LaneMark]) -> list[Head]:
    """Look at the known lanes alone: one index probe each, where a look makes six."""
    return _heads(db.fetch(PROBE, mark_params(known)))


def queues(db: Database) -> list[str]:
    """The queues that jobs wait in."""
    return [queue for (queue,) in db.fetch(QUEUES)]


def _heads(rows: Sequence[tuple[Any, ...]]) -> list[Head]:
    return [
        Head(Lane(queue, priority, job_type), due_in, (moment, id))
        for queue, priority, job_type, due_in, moment, id in rows
    ]


def _params(
    known: Sequence[LaneMark], within: Sequence[Range] = (EVERYWHERE,)
) -> dict[str, Any]:
    return {**_gaps([mark.lane for mark in known], within), **mark_params(known)}


def _gaps(
    known: Sequence[Lane], within: Sequence[Range] = (EVERYWHERE,)
) -> dict[str, Any]:
    lower: list[Lane] = []
    upper: list[Lane] = []
    ordered = sorted(known)
    for begin, end in within:
        is_all = (begin, end) == EVERYWHERE
        inside = ordered if is_all else [lane for lane in ordered if begin < lane < end]
        lower += [begin, *inside]
        upper += [*inside, end]
    return {
        "from_queue": array_of_texts(lane.queue for lane in lower),
        "from_priority": array_of_numbers(lane.priority for lane in lower),
        "from_type": array_of_texts(lane.job_type for lane in lower),
        "to_queue": array_of_texts(lane.queue for lane in upper),
        "to_priority": array_of_numbers(lane.priority for lane in upper),
        "to_type": array_of_texts(lane.job_type for lane in upper),
    }
