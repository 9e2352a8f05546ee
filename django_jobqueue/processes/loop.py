"""The base class of all loops: a subclass defines one round of its work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes.forking import end_if_forked, guard_this_thread

logger = logging.getLogger("django_jobqueue.loop")

FOREVER: Final = 3_600.0  # seconds; somebody will wake us
AFTER_ERROR: Final = 1.0  # seconds; doubled with each further failure
LONGEST_AFTER_ERROR: Final = 30.0
REPEAT_EVERY: Final = 60.0  # seconds between two lines about the same error


class FailureStreak:
    """The failures of a loop in a row: how long to rest, and what to say of them.

    The same error is logged once with its traceback, then at most once a minute with a
    count, and once more when it is over.
    """

    def __init__(self, name: str, longest: float) -> None:
        self._name = name
        self._failed = {"event": Event.LOOP_FAILED, "loop": name}  # of a record
        self._longest = longest  # rest, in seconds
        self._last: tuple[type[BaseException], str] | None = None
        self._failures = 0  # in a row
        self._unlogged = 0  # of those, since the last line
        self._logged_at = 0.0  # time.monotonic()

    def failed(self, error: BaseException) -> float:
        """Take note of a failure; returns the seconds to rest."""
        self._failures += 1
        now, place = time.monotonic(), (type(error), _place_of(error))
        if place != self._last:
            self._last, self._unlogged, self._logged_at = place, 0, now
            logger.exception(
                "The %s failed, and continues", self._name, extra=self._failed
            )
        else:
            self._unlogged += 1
            if now - self._logged_at >= REPEAT_EVERY:
                self._repeat(error, now)
        return min(self._longest, AFTER_ERROR * 2.0 ** min(self._failures - 1, 10))

    def is_over(self) -> None:
        """A round did not fail."""
        if self._failures:
            logger.info(
                "The %s works again after %d failures",
                self._name,
                self._failures,
                extra={"event": Event.LOOP_WORKS, "loop": self._name},
            )
        self._last, self._failures, self._unlogged = None, 0, 0

    def _repeat(self, error: BaseException, now: float) -> None:
        logger.error(
            "The %s failed %d more times in %.0f s: %s: %s",
            self._name,
            self._unlogged,
            now - self._logged_at,
            type(error).__name__,
            error,
            extra=self._failed,
        )
        self._unlogged, self._logged_at = 0, now


class Activity:
    """When this worker last had something to do, and whom to wake when it has.

    Called once per claim, from any thread; a call takes less than a microsecond.
    """

    def __init__(self) -> None:
        self.last = time.monotonic()
        self._wake: list[Callable[[], None]] = []

    def wakes(self, wake: Callable[[], None]) -> None:
        """Call this as well, each time; it must be cheap while nobody is idle."""
        self._wake.append(wake)

    def __call__(self) -> None:
        """There is something to do. Publish it before this call."""
        self.last = time.monotonic()
        for wake in self._wake:
            wake()


class Loop:
    """Does ``tick`` again and again; each one says how long to rest after it.

    ``wake`` cuts a rest short, but not the rest after a failure: whatever wakes a loop
    would otherwise have it fail as often. Tests call ``tick`` themselves, with no
    thread.
    """

    name = "loop"
    longest_after_error = LONGEST_AFTER_ERROR

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stop_requested = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures = FailureStreak(self.name, self.longest_after_error)
        self.is_failing = False  # the last round failed
        self.is_resting = False  # between two rounds

    def tick(self) -> float:
        """One round of work. Returns the seconds to rest until the next."""
        raise NotImplementedError

    def close(self) -> None:
        """Clean up after the loop, in its own thread."""

    def wake(self) -> None:
        """End the rest, or make the next one short."""
        if not self._woken.is_set():
            self._woken.set()

    @property
    def is_woken(self) -> bool:
        """True if the next pause ends at once."""
        return self._woken.is_set()

    @property
    def has_started(self) -> bool:
        """True if it has a thread of its own."""
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
        self._stop_requested.set()
        self.wake()
        if self._thread is None or timeout == 0:
            return self._thread is None
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def round(self) -> float:
        """A tick that survives every error."""
        try:
            wait = self.tick()
        except StoreUnavailable as error:  # logged where it was sorted
            self.is_failing = True
            return error.retry_in
        except BaseException as error:  # also a SystemExit of the project's own code
            end_if_forked()
            self.is_failing = True
            return self._failures.failed(error)
        if self.is_failing:
            self.is_failing = False
            self._failures.is_over()
        return wait

    def _sleep(self, seconds: float) -> None:
        """Wait so long, or until somebody wakes it."""
        if seconds > 0:
            self._woken.wait(seconds)

    def _sleep_after_error(self, seconds: float) -> None:
        """Wait so long after a failure, or until it is to stop."""
        self._stop_requested.wait(seconds)

    def _run(self) -> None:
        guard_this_thread()
        while not self._stop_requested.is_set():
            wait = self.round()
            self.is_resting = True
            if self.is_failing:
                self._sleep_after_error(wait)
            else:
                self._sleep(wait)
            self.is_resting = False
            self._woken.clear()
        try:
            self.close()
        except Exception:
            logger.exception("Closing the %s failed", self.name)


def _place_of(error: BaseException) -> str:
    """The line that raised it: its message may differ each time."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    if step is None:
        return ""
    return f"{step.tb_frame.f_code.co_filename}:{step.tb_lineno}"
