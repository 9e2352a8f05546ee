"""What a dispatcher needs of an executor."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

from django_jobqueue.store.finish import Finished
from django_jobqueue.workers.attempt import Attempt
from django_jobqueue.workers.pace import Pace

logger = logging.getLogger(__name__)

Done = Callable[[Attempt, Finished], None]


class Executor:
    """Slots, and a buffer of attempts that were claimed ahead of them."""

    is_async = False

    def __init__(self, slots: int, *, done: Done, wanting: Callable[[], None]) -> None:
        self.slots = slots
        self.pace = Pace()
        self.low = 0  # attempts in the buffer below which more are wanted
        self._done = done
        self._wanting = wanting
        self._buffer: deque[Attempt] = deque()
        self._running: set[Attempt] = set()

    def start(self) -> None:
        """Get ready."""

    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as slots come free, in this order."""
        raise NotImplementedError

    def nudge(self) -> None:
        """Look whether what waits in the buffer moves; called while something does."""

    def stop(self, timeout: float) -> bool:
        """Stop after what runs; True if it ended in time."""
        raise NotImplementedError

    @property
    def buffered(self) -> int:
        """Attempts that wait for a slot."""
        return len(self._buffer)

    @property
    def ends_soon(self) -> bool:
        """Whether more outcomes are about to come: something waits, or a short job
        runs."""
        if self._buffer:
            return True
        return any(map(self.pace.is_short, {a.job.job_type for a in self.running}))

    @property
    def free(self) -> int:
        """Slots that have nothing to do."""
        return max(0, self.slots - len(self._running) - len(self._buffer))

    @property
    def wants_more(self) -> bool:
        """Whether a slot has nothing to do, or what waits is running low."""
        return bool(self.free or (self.low and self.buffered <= self.low))

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

    def take_back(self) -> list[Attempt]:
        """Take what waits out of the buffer, to be released."""
        taken: list[Attempt] = []
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
        self._running.discard(attempt)
        self.pace.ran(attempt.job.job_type, finished.ran)
        self._done(attempt, finished)
        if len(self._buffer) <= self.low:
            self._wanting()


def safely(clean: Callable[[], None]) -> None:
    """Do what comes between jobs; its troubles are no job's."""
    try:
        clean()
    except Exception:
        logger.exception("Looking after the connections between jobs failed")


def in_thread(name: str, function: Callable[[], None]) -> threading.Thread:
    """Start a daemon thread: it never keeps a process alive that has to end."""
    thread = threading.Thread(target=function, name=name, daemon=True)
    thread.start()
    return thread
