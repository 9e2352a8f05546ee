"""Counters of the processes of one runworkers, in shared memory."""

from __future__ import annotations

import logging
import mmap
import time
from typing import Final, NamedTuple

from django_jobqueue.domain.series import Series, summed
from django_jobqueue.processes.shared_value import SharedValue

logger = logging.getLogger("django_jobqueue.metrics")

ENDED_SIZE: Final = 4 << 20  # bytes for the counters of all that have ended
READS: Final = 1_000  # tries to read while the supervisor adds up
READ_AGAIN: Final = 0.001  # seconds


class Published(NamedTuple):
    """The values that one process publishes."""

    pid: int
    counters: Series  # they only grow
    gauges: Series


class HostCounters:
    """A value for each worker and one for the maintenance process, which write them;
    and one for the supervisor, which adds up there what the ended processes left. So a
    sum over all of them never falls.
    """

    def __init__(self, workers: int) -> None:
        self.workers = SharedValue.several(workers)  # by process entry
        self.maintenance = SharedValue()
        self._ended = SharedValue(ENDED_SIZE)
        self._series_of_ended: Series = {}
        # Odd while the supervisor moves counters from one value to another.
        self._moves = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")

    # For the supervisor alone.

    def add(self, counters: Series) -> None:
        """Count this, too."""
        self._series_of_ended = summed([self._series_of_ended, counters])
        self._write()

    def count_death(self, how: str) -> None:
        """A process has died: killed, exited, unresponsive or lapsed."""
        self.add({"jobqueue_worker_deaths_total": {(how,): 1}})

    def count_recycled(self, why: str) -> None:
        """A worker is replaced on purpose: for jobs, age or memory, or asked for."""
        self.add({"jobqueue_worker_recycled_total": {(why,): 1}})

    def process_ended(self, value: SharedValue) -> None:
        """Keep the counters of a process that has ended, and clear its value."""
        content = value.read()
        if content is None:
            return
        self._moves[0] += 1
        self.add(Published(*content).counters)
        value.clear()
        self._moves[0] += 1

    def _write(self) -> None:
        if not self._ended.write((0, self._series_of_ended, {})):
            logger.error("The metrics of processes that have ended have no room")

    # For whoever exposes them.

    def read(self) -> list[Published]:
        """Of each process that has published something."""
        for _ in range(READS):
            before = self._moves[0]
            contents = [value.read() for value in self._values]
            if not before % 2 and before == self._moves[0]:
                break
            time.sleep(READ_AGAIN)
        return [Published(*content) for content in contents if content is not None]

    @property
    def _values(self) -> list[SharedValue]:
        return [*self.workers, self.maintenance, self._ended]
