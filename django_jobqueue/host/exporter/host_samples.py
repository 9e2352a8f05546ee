"""The metrics of one runworkers, from the memory that its processes share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from typing import Final

from django_jobqueue.host.host_status import HostStatus
from django_jobqueue.metrics.catalogue import host
from django_jobqueue.metrics.metric import Distribution, Kind, Sample, Value
from django_jobqueue.processes import identity
from django_jobqueue.processes.host_counters import HostCounters
from django_jobqueue.processes.process_table import ProcessTable

LEASE_REMAINING: Final = "jobqueue_worker_lease_remaining_seconds"


class HostSamples:
    """Reads them. Whatever is counted under known labels begins with zero, so that the
    first event is seen as one."""

    def __init__(
        self, process_table: ProcessTable, counters: HostCounters, *, drains: bool
    ) -> None:
        self._process_table = process_table
        self._counters = counters
        self._drains = drains  # it ends by itself
        self._zeros = [*_zeros()]
        self._supervisor = os.getppid()

    def __call__(self) -> Iterator[Sample]:
        """All samples of this moment."""
        yield from self._zeros
        for _, *both in self._counters.read():
            for series in both:
                for metric, values in series.items():
                    for labels, value in values.items():
                        yield Sample(metric, _value(value), labels)
        yield from self._jobs()
        yield from self._processes()

    def _jobs(self) -> Iterator[Sample]:
        status = HostStatus.of(self._process_table)
        yield Sample("jobqueue_worker_held_jobs", status.jobs)
        yield Sample("jobqueue_worker_stopping", int(status.is_stopping))
        if status.is_stopping or self._drains:
            yield Sample("jobqueue_worker_remaining_jobs", status.jobs)
        if status.lease_seconds is not None:
            yield Sample(LEASE_REMAINING, status.lease_seconds)

    def _processes(self) -> Iterator[Sample]:
        maintenance = self._counters.maintenance.read()
        pids = {
            "supervisor": [self._supervisor],
            "exporter": [os.getpid()],
            "maintenance": [] if maintenance is None else [maintenance[0]],
            "worker": [entry.pid for entry in self._process_table],
        }
        for process, ids in pids.items():
            yield Sample("jobqueue_worker_processes", len(ids), (process,))
            memory = sum(map(identity.rss, ids))
            yield Sample("jobqueue_worker_resident_memory_bytes", memory, (process,))


def _value(value: object) -> Value:
    """As the exposition takes it."""
    if isinstance(value, tuple):
        return Distribution(*value)
    assert isinstance(value, int | float)
    return value


def _zeros() -> Iterator[Sample]:
    for metric in host().values():
        if metric.name == LEASE_REMAINING:  # nothing is leased without a worker
            continue
        value: Value = 0
        if metric.kind is Kind.HISTOGRAM:
            value = Distribution([0] * (len(metric.bounds) + 1), 0.0)
        for labels in product(*(label.starts for label in metric.labels)):
            yield Sample(metric.name, value, labels)
