"""Totals that never fall: attempts and finished jobs since the tables were made.

Roll-ups are folded and deleted, so their sums fall, which Prometheus would take for a
restart. Workers add to the totals in the statement that adds to the roll-ups. Whoever
else archives jobs writes how many into a table of its own, in the same statement: it
waits for nobody, however long its transaction is open. The pruner adds these up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django_jobqueue.domain import histogram
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.text.json_reading import read_json

ATTEMPT_OUTCOMES: Final = (
    "succeeded",
    "failed",
    "retried",
    "snoozed",
    "cancelled",
    "released",
    "crashed",
)
STATUSES: Final = tuple(ArchivedStatus.values)
ATTEMPT_BOUNDS: Final = (1, 2, 3, 5, 8, 13, 21)

# Two histograms, added up place by place; one without places is the column's default.
_SUM: Final = """(
         SELECT coalesce(jsonb_agg(coalesce(a.count::bigint, 0)
                                   + coalesce(b.count::bigint, 0) ORDER BY n), '[]')
           FROM jsonb_array_elements_text(held.{name})
                WITH ORDINALITY AS a (count, n)
           FULL JOIN jsonb_array_elements_text(excluded.{name})
                WITH ORDINALITY AS b (count, n) USING (n))"""

MOST: Final = 2**63 - 1  # of a bigint
# Waits and runs, added up: a row of plain SQL may have waited since the year 1, and a
# sum that is refused would keep the outcomes that come with it from being written.
SUM_OF_MS: Final = f"""
       least({MOST}, held.{{name}}::numeric + excluded.{{name}})::bigint"""

_ATTEMPTS: Final = tuple(f"attempts_{outcome}" for outcome in ATTEMPT_OUTCOMES)
_JOBS: Final = tuple(f"jobs_{status}" for status in STATUSES)
_MS: Final = ("run_ms", "wait_ms")
_COUNTS: Final = (*_ATTEMPTS, *_JOBS, "attempts_sum")
_NUMBERS: Final = (*_ATTEMPTS, *_JOBS, *_MS, "attempts_sum")
_HISTOGRAMS: Final = ("run_histogram", "wait_histogram", "attempts_histogram")
_AS_THEY_ARE: Final = (
    *("job_type", "queue", "run_ms", "wait_ms", "attempts_sum"),
    *_HISTOGRAMS,
)
_COLUMNS: Final = ", ".join(("job_type", "queue", *_NUMBERS, *_HISTOGRAMS))
_TYPES: Final = ", ".join(
    (
        "job_type text, queue text",
        *(f"{name} bigint" for name in _NUMBERS),
        *(f"{name} jsonb" for name in _HISTOGRAMS),
    )
)
_ADDED: Final = ", ".join(
    (
        *(f"{name} = held.{name} + excluded.{name}" for name in _COUNTS),
        *(f"{name} = {SUM_OF_MS.format(name=name)}" for name in _MS),
        *(f"{name} = {_SUM.format(name=name)}" for name in _HISTOGRAMS),
        "changed_at = clock_timestamp()",
    )
)

ADD: Final = f"""
INSERT INTO jobqueue_total AS held ({_COLUMNS})
SELECT {_COLUMNS}
  FROM jsonb_to_recordset(%(totals)s::jsonb) AS given ({_TYPES})
 ORDER BY job_type COLLATE "C", queue COLLATE "C"
    ON CONFLICT (job_type, queue) DO UPDATE SET {_ADDED}
"""

# A part of a statement that archives the rows of its CTE {gone}.
COUNTED: Final = """
counted AS (
  INSERT INTO jobqueue_archivedcount (job_type, queue, status, jobs)
  SELECT job_type, queue, {status}, count(*) FROM {gone} GROUP BY 1, 2, 3
)"""

_SUMS: Final = ", ".join(
    f"coalesce(sum(jobs) FILTER (WHERE status = '{status}'), 0)" for status in STATUSES
)
BATCH: Final = 1_000
FOLD: Final = f"""
WITH old AS (
  DELETE FROM jobqueue_archivedcount
   WHERE id = ANY (ARRAY(SELECT id FROM jobqueue_archivedcount
                          ORDER BY id
                          LIMIT {BATCH}
                            FOR UPDATE SKIP LOCKED))
  RETURNING job_type, queue, status, jobs
), added AS (
  INSERT INTO jobqueue_total AS held (job_type, queue, {", ".join(_JOBS)})
  SELECT job_type, queue, {_SUMS}
    FROM old
   GROUP BY job_type, queue
   ORDER BY job_type COLLATE "C", queue COLLATE "C"
      ON CONFLICT (job_type, queue) DO UPDATE
     SET {", ".join(f"{name} = held.{name} + excluded.{name}" for name in _JOBS)},
         changed_at = clock_timestamp()
)
SELECT count(*) FROM old
"""

# Both tables in one snapshot: what is being folded is in one of them. Text, since
# Django's connections do not decode JSON.
READ: Final = f"""
SELECT job_type, queue, {", ".join(_NUMBERS)},
       {", ".join(f"{name}::text" for name in _HISTOGRAMS)}
  FROM jobqueue_total
UNION ALL
SELECT job_type, queue, {", ".join("0" for _ in _ATTEMPTS)}, {_SUMS}, 0, 0, 0,
       '[]', '[]', '[]'
  FROM jobqueue_archivedcount
 GROUP BY job_type, queue
"""

# Whoever enqueues names the queue, and may name a new one each time. So of each job
# type the queues that had jobs last keep rows of their own, and all others share one.
OTHER: Final = "(other)"
MOST_QUEUES: Final = 1_000
TAKE_QUIET: Final = f"""
WITH quiet AS (
  SELECT job_type, queue
    FROM (SELECT job_type, queue, changed_at,
                 row_number() OVER (PARTITION BY job_type
                                    ORDER BY changed_at DESC, queue) AS place
            FROM jobqueue_total
           WHERE queue <> '{OTHER}') AS ranked
   WHERE changed_at < statement_timestamp() - interval '90 days'
      OR (place > {MOST_QUEUES}
          AND changed_at < statement_timestamp() - interval '1 hour')
), held AS (
  SELECT total.job_type, total.queue
    FROM jobqueue_total AS total
    JOIN quiet USING (job_type, queue)
   LIMIT {BATCH}
     FOR UPDATE OF total SKIP LOCKED
)
DELETE FROM jobqueue_total AS total
 USING held
 WHERE total.job_type = held.job_type AND total.queue = held.queue
RETURNING total.job_type, '{OTHER}',
          {", ".join(f"total.{name}" for name in _NUMBERS)},
          {", ".join(f"total.{name}::text" for name in _HISTOGRAMS)}
"""

DROP: Final = """
DELETE FROM jobqueue_total AS total
 WHERE changed_at < statement_timestamp() - interval '90 days'
   AND NOT EXISTS (SELECT FROM jobqueue_jobtype AS type
                    WHERE type.name = total.job_type)
"""


@dataclass(slots=True, kw_only=True)
class Total:
    """The counts of one job type in one queue: since the beginning, or to be added."""

    job_type: str
    queue: str
    attempts: Mapping[str, int] = field(default_factory=dict)  # by outcome
    jobs: Mapping[str, int] = field(default_factory=dict)  # archived, by status
    run_ms: int = 0
    wait_ms: int = 0
    run_histogram: Sequence[int] = ()
    wait_histogram: Sequence[int] = ()
    attempts_histogram: Sequence[int] = ()  # of jobs that succeeded or failed
    attempts_sum: int = 0


def attempts_histogram(jobs: int, later: Mapping[int, int]) -> list[int]:
    """The jobs by their numbers of attempts; of ``jobs``, those not in ``later`` had
    one."""
    counts = [0] * (len(ATTEMPT_BOUNDS) + 1)
    counts[0] = jobs - sum(later.values())
    for number, times in later.items():
        place = next(
            (n for n, bound in enumerate(ATTEMPT_BOUNDS) if number <= bound),
            len(ATTEMPT_BOUNDS),
        )
        counts[place] += times
    return counts


def rows(counts: Iterable[Total]) -> str:
    """The arguments of the statement that adds; one row for each job type and queue."""
    by_key: dict[tuple[str, str], Total] = {}
    for count in counts:
        key = (count.job_type, count.queue)
        held = by_key.get(key)
        by_key[key] = count if held is None else added(held, count)
    return json.dumps([_row(count) for count in by_key.values()])


def added(first: Total, second: Total) -> Total:
    """Two counts of the same job type and queue, added up."""
    return Total(
        job_type=first.job_type,
        queue=first.queue,
        attempts=Counter(first.attempts) + Counter(second.attempts),
        jobs=Counter(first.jobs) + Counter(second.jobs),
        run_ms=first.run_ms + second.run_ms,
        wait_ms=first.wait_ms + second.wait_ms,
        run_histogram=_longer(first.run_histogram, second.run_histogram),
        wait_histogram=_longer(first.wait_histogram, second.wait_histogram),
        attempts_histogram=_longer(first.attempts_histogram, second.attempts_histogram),
        attempts_sum=first.attempts_sum + second.attempts_sum,
    )


def fold(db: Database) -> bool:
    """Add up what others than workers archived; True if there may be more."""
    ((folded,),) = db.fetch(FOLD)
    return bool(folded == BATCH)


def read(db: Database) -> list[Total]:
    """The totals, by job type and queue."""
    return _by_place(db.fetch(READ))


def fold_queues(db: OwnConnection) -> bool:
    """Add up the totals of queues that are quiet, for each job type; True if there may
    be more. The sums of the job types stay."""
    with db.transaction() as transaction:
        taken = transaction.fetch(TAKE_QUIET)
        if taken:
            transaction.run(ADD, {"totals": rows(_by_place(taken))})
    return len(taken) == BATCH


def _by_place(rows: Iterable[Sequence[Any]]) -> list[Total]:
    by_key: dict[tuple[str, str], Total] = {}
    for job_type, queue, *columns in rows:
        numbers = dict(zip((*_NUMBERS, *_HISTOGRAMS), columns, strict=True))
        total = Total(
            job_type=job_type,
            queue=queue,
            attempts={one: int(numbers[f"attempts_{one}"]) for one in ATTEMPT_OUTCOMES},
            jobs={one: int(numbers[f"jobs_{one}"]) for one in STATUSES},
            run_ms=int(numbers["run_ms"]),
            wait_ms=int(numbers["wait_ms"]),
            attempts_sum=int(numbers["attempts_sum"]),
            **{name: read_json(numbers[name]) for name in _HISTOGRAMS},
        )
        held = by_key.get((job_type, queue))
        by_key[job_type, queue] = total if held is None else added(held, total)
    return [by_key[key] for key in sorted(by_key)]


def drop(db: Database) -> None:
    """Delete the totals of job types that are gone, 90 days after their last change."""
    db.run(DROP)


def _longer(first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
    if not first or not second:
        return first or second
    return histogram.added((first, second))


def _row(count: Total) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(count, name) for name in _AS_THEY_ARE}
    row |= {f"attempts_{one}": count.attempts.get(one, 0) for one in ATTEMPT_OUTCOMES}
    row |= {f"jobs_{one}": count.jobs.get(one, 0) for one in STATUSES}
    return row
