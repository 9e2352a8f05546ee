"""Stores the roll-ups: workers add their counts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from django_jobqueue.domain.histogram import BUCKETS, bucket_of
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.store import totals
from django_jobqueue.store.connection import Database

# Two histograms, added up place by place; one without places is the column's default.
_SUM = """(
         SELECT coalesce(array_agg(coalesce(a, 0) + coalesce(b, 0) ORDER BY n), '{{}}')
           FROM unnest(held.{name}, excluded.{name})
                WITH ORDINALITY AS place (a, b, n))"""
ADDED: Final = f"""
   SET succeeded = held.succeeded + excluded.succeeded,
       failed = held.failed + excluded.failed,
       retried = held.retried + excluded.retried,
       other = held.other + excluded.other,
       run_ms = {totals.SUM_OF_MS.format(name="run_ms")},
       wait_ms = {totals.SUM_OF_MS.format(name="wait_ms")},
       run_histogram = {_SUM.format(name="run_histogram")},
       wait_histogram = {_SUM.format(name="wait_histogram")}
"""

# In key order, so that two workers never wait for each other in a ring. The totals
# follow in the same statement, so that both have every count, or neither.
ADD: Final = f"""
WITH added AS ({totals.ADD})
INSERT INTO jobqueue_rollup AS held (
       bucket, job_type, queue, release, succeeded, failed, retried, other, run_ms,
       wait_ms, run_histogram, wait_histogram)
SELECT date_trunc('minute', clock_timestamp(), 'UTC'), job_type, queue, release,
       succeeded, failed, retried, other, run_ms, wait_ms, run_histogram, wait_histogram
  FROM jsonb_to_recordset(%(counts)s::jsonb) AS counted (
         job_type text, queue text, release text, succeeded integer, failed integer,
         retried integer, other integer, run_ms bigint, wait_ms bigint,
         run_histogram integer[], wait_histogram integer[])
 ORDER BY job_type COLLATE "C", queue COLLATE "C", release COLLATE "C"
    ON CONFLICT (bucket, job_type, queue, release) DO UPDATE {ADDED}
"""


@dataclass(slots=True)
class Count:
    """The counts of one job type in one queue since a worker's last write."""

    job_type: str
    queue: str
    release: str = ""  # of the worker
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0
    run_ms: float = 0.0
    wait_ms: float = 0.0
    run_histogram: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    wait_histogram: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    # For totals and metrics. A success is in none of them, as long as it was the first
    # attempt.
    outcomes: Counter[str] = field(default_factory=Counter)  # of attempts
    statuses: Counter[str] = field(default_factory=Counter)  # of archived jobs
    later_attempts: Counter[int] = field(
        default_factory=Counter
    )  # by number, from 2 on

    def unsuccessful(
        self, outcome: str | None, status: ArchivedStatus | None, attempt: int
    ) -> None:
        """Count an attempt that did not succeed, by what became of it; None if it never
        began. ``status`` is that of the job if the attempt was its last."""
        if status is ArchivedStatus.FAILED:
            self.failed += 1
        elif status is None and outcome in ("retried", "crashed"):
            self.retried += 1
        else:
            self.other += 1
        if outcome is not None:
            self.outcomes[outcome] += 1
        if status is not None:
            self.statuses[status.value] += 1
            if status is ArchivedStatus.FAILED and attempt > 1:
                self.later_attempts[attempt] += 1

    def attempt(self, ran: float, waited: float) -> None:
        """Count the times, in seconds, of one attempt."""
        self.run_ms += ran * 1_000
        self.wait_ms += waited * 1_000
        self.run_histogram[bucket_of(ran)] += 1
        self.wait_histogram[bucket_of(waited)] += 1

    def row(self) -> dict[str, object]:
        """This count as the roll-ups take it."""
        row = {name: getattr(self, name) for name in _COLUMNS}
        return {**row, "run_ms": round(self.run_ms), "wait_ms": round(self.wait_ms)}

    def total(self) -> totals.Total:
        """This count as the totals take it."""
        statuses = self.statuses + Counter(succeeded=self.succeeded)
        return totals.Total(
            job_type=self.job_type,
            queue=self.queue,
            attempts=self.outcomes + Counter(succeeded=self.succeeded),
            jobs=statuses,
            run_ms=round(self.run_ms),
            wait_ms=round(self.wait_ms),
            run_histogram=self.run_histogram,
            wait_histogram=self.wait_histogram,
            attempts_histogram=totals.attempts_histogram(
                statuses["succeeded"] + statuses["failed"], self.later_attempts
            ),
            attempts_sum=statuses["succeeded"]
            + statuses["failed"]
            + sum((number - 1) * n for number, n in self.later_attempts.items()),
        )


_COLUMNS: Final = (
    *("job_type", "queue", "release", "succeeded", "failed", "retried", "other"),
    *("run_ms", "wait_ms", "run_histogram", "wait_histogram"),
)


def add(db: Database, counts: Sequence[Count]) -> None:
    """Add these counts to the current minute, and to the totals."""
    params = {
        "counts": json.dumps([count.row() for count in counts]),
        "totals": totals.rows([count.total() for count in counts]),
    }
    db.run(ADD, params)
