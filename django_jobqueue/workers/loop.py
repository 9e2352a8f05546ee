"""The one thread wrapper: a subclass says what a round of its work is."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.workers.forking import guard_this_thread

logger = logging.getLogger(__name__)

FOREVER: Final = 3_600.0  # seconds; somebody will wake us
AFTER_ERROR: Final = 1.0


class Loop:
    """Does ``tick`` again and again; each one says how long to rest after it.

    ``wake`` cuts a rest short. Tests call ``tick`` themselves, with no thread.
    """

    name = "loop"

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def tick(self) -> float:
        """One round of work. Returns the seconds to rest until the next."""
        raise NotImplementedError

    def close(self) -> None:
        """What is left to do when the loop has ended, in its own thread."""

    def wake(self) -> None:
        """End the rest, or make the next one short."""
        if not self._woken.is_set():
            self._woken.set()

    @property
    def has_started(self) -> bool:
        """Whether it has a thread of its own."""
        return self._thread is not None

    def start(self) -> None:
        """Begin, in a thread of its own. Raises RuntimeError if there is no room for
        one."""
        thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        thread.start()
        self._thread = thread

    def stop(self, timeout: float | None = None) -> bool:
        """Stop after the current round; True if it ended within ``timeout`` seconds.

        With a timeout of zero, only ask.
        """
        self._stopping = True
        self.wake()
        if self._thread is None or timeout == 0:
            return self._thread is None
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def round(self) -> float:
        """A tick that survives every error."""
        try:
            return self.tick()
        except StoreUnavailable as error:  # logged where it was sorted
            return error.retry_in
        except Exception:
            logger.exception("The %s failed; it goes on", self.name)
            return AFTER_ERROR

    def _run(self) -> None:
        guard_this_thread()
        while not self._stopping:
            try:
                rest = self.round()
            except BaseException:  # a SystemExit, say, of the project's own code
                logger.exception("The %s was told to end; it goes on", self.name)
                rest = AFTER_ERROR
            if rest > 0:
                self._woken.wait(rest)
            self._woken.clear()
        try:
            self.close()
        except Exception:
            logger.exception("Closing the %s failed", self.name)


class LoopGroup(Loop):
    """Loops that share one thread, and so may share one connection."""

    def __init__(self, name: str, loops: Sequence[Loop]) -> None:
        super().__init__()
        self.name = name
        self._due = dict.fromkeys(loops, 0.0)  # time.monotonic()

    def tick(self) -> float:
        """Do the rounds that are due."""
        for loop, due in self._due.items():
            if due <= time.monotonic():
                rest = loop.round()
                self._due[loop] = time.monotonic() + rest
        return max(0.0, min(self._due.values()) - time.monotonic())

    def hurry(self, loop: Loop) -> None:
        """Let this one's next round be now."""
        self._due[loop] = 0.0
        self.wake()

    def close(self) -> None:
        """Close each."""
        for loop in self._due:
            loop.close()
