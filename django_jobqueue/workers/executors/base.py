"""The interface and common parts of executors, and how many jobs they have claimed
ahead of free slots."""

from __future__ import annotations

import logging
import threading
import time
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

logger = logging.getLogger("django_jobqueue.worker")

# Outcomes that wait while others are written; no job is claimed until there are fewer.
# Tiny handlers end faster than outcomes can be written, and a crash runs again what is
# not written: it came to 150 ms of work in a drain of 60,000, and grew with the drain.
MOST_UNWRITTEN: Final = 1_000
LEAST_PATIENCE: Final = 5.0  # seconds; receivers of signals may be slow
STALE: Final = 0.5  # seconds that a job may wait in the buffer before it is given back

# How many are claimed ahead, by the run times of their types and the rate of starts.
MOST_PREFETCHED: Final = 3_000  # jobs
LARGEST_PREFETCHED: Final = (
    32_000_000  # characters of data, if all have as many as the largest
)
OVERHEAD: Final = 0.00002  # seconds of Python around a job, one at a time
SHORT: Final = 0.01  # seconds; what takes longer is not claimed ahead
SAMPLES: Final = 10  # jobs, before a run time or a rate of starts is believed
WEIGHT: Final = 0.05  # of the newest run
FADE: Final = 0.9  # of what was the largest, at each claim
LEAST_RATE: Final = 400.0  # starts a second, until it is known, and at least
GROWTH: Final = 1.5  # of the rate from claim to claim, since others have pauses
LONGEST_WAIT: Final = 0.25  # seconds


class RuntimeEstimate:
    """Moving averages of run times, by job type; how much data jobs have here."""

    def __init__(self) -> None:
        self._largest = 0.0  # characters, of late
        self._mean: dict[str, float] = {}
        self._seen: dict[str, int] = {}

    def ran(self, job_type: str, seconds: float) -> None:
        """Take note of one run."""
        seen = self._seen.get(job_type, 0)
        if seen < SAMPLES:
            self._seen[job_type] = seen + 1
        mean = self._mean.get(job_type, seconds)
        self._mean[job_type] = mean + (seconds - mean) * WEIGHT

    def took(self, largest: int) -> None:
        """Take note of the most data, in characters, that a job of one claim has."""
        self._largest = max(self._largest * FADE, largest, 1)

    def is_short(self, job_type: str) -> bool:
        """True if jobs of this type are known to be short."""
        return self._seen.get(job_type, 0) >= SAMPLES and self._mean[job_type] <= SHORT

    def mean(self, job_type: str) -> float:
        """The moving average, in seconds; 0 if nothing is known."""
        return self._mean.get(job_type, 0.0)

    def prefetch(self, job_type: str, slots: int) -> int:
        """The number of jobs of this type that this many slots run in the time of
        PREFETCH.

        A claim takes as long as hundreds of the shortest ones.
        """
        if not self.is_short(job_type):
            return 0
        each = max(self._mean[job_type] / slots, OVERHEAD)
        room = LARGEST_PREFETCHED / self._largest if self._largest else MOST_PREFETCHED
        return int(min(MOST_PREFETCHED, conf.prefetch / each, room))


class StartRate:
    """How fast jobs start that were claimed ahead: slower than their run times say
    where other processes have the CPU, or where outcomes wait to be written.

    Measured from claim to claim. Eight processes on two cores that went by run times
    alone held jobs for more than a second, and gave every fifth one back."""

    def __init__(self) -> None:
        self._per_second = LEAST_RATE
        self._since = 0.0  # time.monotonic()
        self._waiting = 0  # jobs, then

    def claimed(self, jobs: int, *, waiting: int) -> None:
        """So many come to those that still wait."""
        now, started = time.monotonic(), self._waiting - waiting
        if started >= SAMPLES:
            seen = started / max(now - self._since, 0.001)
            self._per_second = max(LEAST_RATE, min(seen, GROWTH * self._per_second))
        self._since, self._waiting = now, waiting + jobs

    def gave_back(self) -> None:
        """None of them waits any more, though they did not start."""
        self._waiting = 0

    @property
    def most_prefetched(self) -> int:
        """The most jobs to have claimed ahead, so that none waits for long."""
        return int(LONGEST_WAIT * self._per_second)


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
