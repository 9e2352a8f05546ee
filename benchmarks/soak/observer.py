"""Looks at a soak every few seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from benchmarks.figures import percentile
from benchmarks.processes import Workers, memory
from benchmarks.site import Trial
from benchmarks.soak.kinds import Mix

MIB: Final = 2**20
SIZES: Final = b"""
SELECT pg_total_relation_size('jobqueue_queuedjob'),
       pg_total_relation_size('jobqueue_archivedjob'),
       (SELECT count(*) FROM jobqueue_queuedjob)
"""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was seen at one look, and since the one before."""

    minutes: float  # since the start
    starts_per_s: float
    short_p50_ms: float  # from when a job is due to its start
    short_p99_ms: float
    scheduled_p99_ms: float
    keyed_p99_ms: float  # from when a job is due to its start
    workers_mb: float  # PSS of the processes that run handlers
    others_mb: float  # PSS of the supervisor and its other children
    queue_mb: float  # with its indexes
    archive_mb: float
    waiting: int  # and running jobs
    cpu: float  # cores that the workers and the server used


class Observer:
    """Takes samples of one trial."""

    def __init__(self, trial: Trial, workers: Workers) -> None:
        self._trial = trial
        self._workers = workers
        self._began = self._last = time.monotonic()
        self._seen = 0  # records of the journal
        self._cpu = self._spent()

    def look(self) -> Sample:
        """What is there now, and was since the last look."""
        now, spent = time.monotonic(), self._spent()
        records = self._trial.journal.records(since=self._seen)
        took = now - self._last
        late: dict[int, list[float]] = {
            mix: [] for mix in (Mix.SHORT, Mix.SCHEDULED, Mix.KEYED)
        }
        for record in records:
            if record.kind in late:
                late[record.kind].append((record.at - record.number) / 1e6)
        own = self._trial.journal.pids()
        connection = self._trial.database.connection
        queue, archive, waiting = connection.execute(SIZES).fetchall()[0]
        sample = Sample(
            minutes=(now - self._began) / 60,
            starts_per_s=len(records) / took,
            short_p50_ms=percentile(late[Mix.SHORT] or [0], 50),
            short_p99_ms=percentile(late[Mix.SHORT] or [0], 99),
            scheduled_p99_ms=percentile(late[Mix.SCHEDULED] or [0], 99),
            keyed_p99_ms=percentile(late[Mix.KEYED] or [0], 99),
            workers_mb=memory(own).pss,
            others_mb=memory(set(self._workers.pids()) - own).pss,
            queue_mb=queue / MIB,
            archive_mb=archive / MIB,
            waiting=waiting,
            cpu=(spent - self._cpu) / took,
        )
        self._seen += len(records)
        self._last, self._cpu = now, spent
        return sample

    def _spent(self) -> float:
        return self._workers.cpu() + self._trial.place.cpu()
