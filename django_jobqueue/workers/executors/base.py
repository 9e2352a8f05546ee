"""The interface and common parts of executors."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from django_jobqueue.conf import conf
from django_jobqueue.domain.failures import forget_traceback
from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes import forking
from django_jobqueue.processes.attempt_table import AttemptTable
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.workers.executors.runtime_estimate import RuntimeEstimate
from django_jobqueue.workers.executors.start_rate import StartRate

logger = logging.getLogger("django_jobqueue.worker")

# Outcomes that wait while others are written; no job is claimed until there are fewer.
# Tiny handlers end faster than outcomes can be written, and a crash runs again what is
# not written: it came to 150 ms of work in a drain of 60,000, and grew with the drain.
MOST_UNWRITTEN: Final = 1_000
LEAST_PATIENCE: Final = 5.0  # seconds; receivers of signals may be slow
STALE: Final = 0.5  # seconds that a job may wait in the buffer before it is given back


class ExecutorCallbacks(NamedTuple):
    """The parts of the worker that an executor calls."""

    on_done: Callable[[Attempt, Finished], None]  # an attempt came to this
    on_slot_free: Callable[[], None]  # it can take more
    count_unwritten: Callable[[], int] = lambda: 0  # outcomes that wait for a batch
    table: AttemptTable = AttemptTable(0)  # where others see what runs


class Executor:
    """Slots, and a buffer of attempts that were claimed ahead of them."""

    is_async = False

    def __init__(self, slots: int, callbacks: ExecutorCallbacks) -> None:
        self.slots = slots
        self.runtimes = RuntimeEstimate()
        self._start_rate = StartRate()
        self.low = 0  # claimed ahead; below it more are wanted
        self._on_done = callbacks.on_done
        self._on_slot_free = callbacks.on_slot_free
        self._count_unwritten = callbacks.count_unwritten
        self._table = callbacks.table
        self._buffer: deque[Attempt] = deque()
        self._running: set[Attempt] = set()

    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as slots come free, in this order."""
        raise NotImplementedError

    def claimed(self, attempts: Sequence[Attempt]) -> None:
        """Run these as slots come free, in this order; they were just claimed."""
        self._start_rate.claimed(len(attempts), waiting=len(self._buffer))
        self.put(attempts)
        self.runtimes.took(max([len(a.job.data) for a in attempts], default=0))

    def nudge(self) -> None:
        """Look whether what waits in the buffer moves; called while something does."""

    def stop(self, timeout: float) -> bool:
        """Stop after what runs; True if it ended in time."""
        raise NotImplementedError

    def problem(self, now: float) -> str | None:
        """Why it cannot go on, for the log; None if it can. ``now`` is
        time.monotonic()."""
        return None

    @property
    def is_dead(self) -> bool:
        """True if nothing that is in a slot will ever go on."""
        return False

    def is_held_up(self, attempt: Attempt) -> bool:
        """True if this attempt, which is over or has not started, waits for others
        here, and not for itself."""
        return False

    @property
    def buffered(self) -> int:
        """Attempts that wait for a slot."""
        return len(self._buffer)

    @property
    def ends_soon(self) -> bool:
        """True if more outcomes are about to come: something waits, or a short job
        runs."""
        if self._buffer:
            return True
        return any(map(self.runtimes.is_short, {a.job.job_type for a in self.running}))

    @property
    def free(self) -> int:
        """Slots that have nothing to do."""
        return max(0, self.slots - len(self._running) - len(self._buffer))

    @property
    def backlog(self) -> int:
        """Attempts that wait for a slot, and outcomes that wait to be written."""
        return len(self._buffer) + self._count_unwritten()

    @property
    def wants_more(self) -> bool:
        """True if a slot has nothing to do, or what is claimed ahead is running low."""
        if self._count_unwritten() >= MOST_UNWRITTEN:
            return False
        return bool(self.free or (self.low and self.backlog <= self.low))

    @property
    def running(self) -> list[Attempt]:
        """Attempts that are in a slot."""
        while True:
            try:
                return list(self._running)
            except RuntimeError:  # it changed meanwhile, in another thread
                continue

    def thread_of(self, attempt: Attempt) -> int | None:
        """The thread in which this attempt runs its Python code."""
        return attempt.thread

    def prefetch(self, job_type: str) -> int:
        """The number of jobs of this type to have claimed ahead of the slots."""
        by_runtime = self.runtimes.prefetch(job_type, self.slots)
        return min(by_runtime, self._start_rate.most_prefetched)

    def take_back(self) -> list[Attempt]:
        """Take what waits out of the buffer, to be released."""
        taken: list[Attempt] = []
        self._start_rate.gave_back()
        while self._buffer:
            try:
                taken.append(self._buffer.popleft())
            except IndexError:
                break
        return taken

    def oldest_wait(self, now: float) -> float:
        """Seconds for which the first attempt in the buffer has waited."""
        try:
            return now - self._buffer[0].claimed
        except IndexError:
            return 0.0

    def _finished(self, attempt: Attempt, finished: Finished) -> None:
        """Its slot is free; its outcome is known already."""
        self._running.discard(attempt)
        if attempt.error is not None:
            forget_traceback(attempt.error)
        self.runtimes.ran(attempt.job.job_type, finished.ran)
        if len(self._buffer) <= self.low and self.wants_more:
            self._on_slot_free()


def patience(attempt: Attempt | None) -> float:
    """Seconds that what comes before a handler, or after it, may take: receivers of
    signals, the formatting of an exception, the cleaning of connections."""
    timed_out = attempt is not None and attempt.asked is StopReason.TIME_OUT
    return max(LEAST_PATIENCE, conf.cancel_grace if timed_out else conf.grace)


def safely(clean: Callable[[], None]) -> None:
    """Do the work between jobs; errors here never fail a job."""
    try:
        clean()
    except BaseException:  # a SystemExit would end the thread, and its slot with it
        forking.end_if_forked()
        logger.exception("Resetting the connections between jobs failed")


def in_thread(name: str, function: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread: it never keeps a process alive that has to end."""
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread
