"""Deletes what is old enough, in small batches: archived jobs, unique windows, rows of
workers and hosts that are gone, roll-ups, failure groups, the audit, bulk operations,
buckets of rates, and what features say. Adds up the counts of archived jobs, and those
of queues that are quiet."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from django_jobqueue import rooms, signals
from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.host.maintenance.data_index_builder import DataIndexBuilder
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.processes.loop import FailureStreak, Loop
from django_jobqueue.store import (
    audit,
    failure_rollup,
    host_rows,
    rollup_folding,
    totals,
    worker_rows,
)
from django_jobqueue.store.bulk import operation_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import prune

logger = logging.getLogger("django_jobqueue.maintenance")

PAUSE_FACTOR: Final = 4  # the rest after a batch is so many times as long as it took
HOUR: Final = 3_600.0  # seconds

Batch = Callable[[OwnConnection], object]  # returns whether to repeat it


class Pruner(Loop):
    """One batch per tick, so that it never holds its thread or a lock for long."""

    name = "pruner"

    def __init__(self, connection: OwnConnection, deadlines: DeadlineWatch) -> None:
        super().__init__()
        self._connection = connection
        self._deadlines = deadlines
        self._pass: Iterator[int] | None = None
        self._pruned = 0
        self._walks: dict[prune.Rule, prune.Walk] = {}
        self._tidied: dict[str, int] = {}
        self._hour_ends = time.monotonic() + HOUR
        self._data_indexes = DataIndexBuilder()
        self._streaks: dict[str, FailureStreak] = {}  # by kind of step

    def tick(self) -> float:
        """Prune one batch; none by a clock that may be wrong."""
        if self._pass is None:
            self._deadlines.next_for(self, reread=True)  # and see the clock
        if self._deadlines.clock_is_doubted:
            self._pass = None
            return conf.prune_interval
        if self._pass is None:
            self._pass = self._batches()
            self._pruned = 0
        began = time.monotonic()
        try:
            self._pruned += next(self._pass)
        except StopIteration:
            self._pass = None
            if self._pruned:
                logger.info("%d archived jobs were pruned", self._pruned)
                announcer.send(signals.jobs_pruned, None, count=self._pruned)
            return conf.prune_interval
        except Exception as error:
            self._pass = None
            if isinstance(error, StoreUnavailable):  # perhaps cut off after long work
                error.retry_in = max(error.retry_in, _pause_after(began))
            raise
        return _pause_after(began)

    def _batches(self) -> Iterator[int]:
        hourly = time.monotonic() >= self._hour_ends
        if hourly:  # what another transaction had locked, or committed late
            self._hour_ends = time.monotonic() + HOUR
            self._walks.clear()
        check = partial(self._data_indexes.check, drops=hourly)
        yield from self._each_step("data indexes", self._until_done(check))
        yield from self._each_step("archive", self._prune())
        for batch in self._others(hourly):
            of = getattr(batch, "func", batch)
            name = f"{of.__module__.rpartition('.')[2]}.{of.__name__}"
            yield from self._each_step(name, self._until_done(batch))

    def _prune(self) -> Iterator[int]:
        rules = prune.rules(self._connection, conf.retention, conf.retention_count)
        self._walks = {rule: self._walks.get(rule, prune.Walk()) for rule in rules}
        for rule, walk in self._walks.items():
            yield from prune.prune(self._connection, rule, walk)

    def _others(self, hourly: bool) -> Iterator[Batch]:
        """The other batches of a pass, in order."""
        yield from (prune.close_windows, worker_rows.forget, host_rows.forget)
        yield partial(prune.tidy, walked=self._tidied)
        yield from (rollup_folding.fold, rollup_folding.drop)
        yield from (totals.fold, failure_rollup.drop, prune.drop_buckets)
        if (keep := conf.audit_retention) is not None:
            for drop in (audit.drop, operation_rows.drop, *rooms.offered("dropped")):
                yield partial(drop, keep=keep)
        if hourly:
            yield from (prune.forget_groups, totals.drop, totals.fold_queues)
            yield from rooms.offered("dropped_hourly")

    def _each_step(self, name: str, steps: Iterator[int]) -> Iterator[int]:
        """The steps of one kind. One that fails ends them, and not the pass: what is
        refused today would keep all that comes later from ever being pruned."""
        streak = self._streaks.setdefault(name, FailureStreak(f"pruner ({name})", 0))
        while True:
            try:
                count = next(steps)
            except StopIteration:
                streak.is_over()
                return
            except Exception as error:
                if not isinstance(error, StoreUnavailable):
                    streak.failed(error)
                elif error.is_outage:
                    raise
                yield 0
                return
            yield count

    def _until_done(self, batch: Batch) -> Iterator[int]:
        """Repeat a batch, with a pause after each that found something."""
        while batch(self._connection):
            yield 0


def _pause_after(began: float) -> float:
    """Seconds to rest after a batch, also after one that failed."""
    return (time.monotonic() - began) * PAUSE_FACTOR
