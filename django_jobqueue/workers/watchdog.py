"""Watches running attempts: interrupts those past their timeout, and reports those that
do not stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.loop import Loop
from django_jobqueue.workers.executors.base import Executor, patience

CHECK_EVERY: Final = 0.25  # seconds, while the worker holds jobs
CHECK_EVERY_IDLE: Final = 1.0  # the same while it holds none
SLEEP_AFTER: Final = 15.0  # seconds without a job until it sleeps
LONGEST_SLEEP: Final = 60.0  # seconds, in case a wake-up is lost


class Watchdog(Loop):
    """Interrupts a handler at its timeout; if it goes on, has its process replaced,
    because a thread cannot be killed.

    An attempt is watched as long as it has a slot. What comes before its handler and
    after it has a bound, too: receivers of signals, the text of an exception and the
    reset of connections may run code of the project.
    """

    name = "watchdog"

    def __init__(
        self,
        executors: Sequence[Executor],
        held: Collection[Attempt],
        on_unresponsive: Callable[[list[Attempt]], None],
        on_broken: Callable[[str], None] = lambda why: None,
    ) -> None:
        super().__init__()
        self.on_checked: Callable[[], None] = lambda: None  # called after each round
        self._executors = executors
        self._held = held  # all jobs that this process has
        self._on_unresponsive = on_unresponsive
        self._on_broken = on_broken  # an executor cannot go on
        self._held_at = time.monotonic()
        self.sleeps = False

    def tick(self) -> float:
        """Check every attempt that has a slot."""
        now = time.monotonic()
        unresponsive: list[Attempt] = []
        soonest = self._longest_wait(now)
        for executor in self._executors:
            for attempt in executor.running:
                if attempt.over or not attempt.started:
                    self._check_outside_handler(executor, attempt, now, unresponsive)
                else:
                    soonest = min(soonest, self._check(attempt, now, unresponsive))
            if why := executor.problem(now):
                self._on_broken(why)
        if unresponsive:
            self._on_unresponsive(unresponsive)
        self.on_checked()
        return max(soonest, 0.005)

    def _longest_wait(self, now: float) -> float:
        self.sleeps = True  # said first: see Activity
        if self._held:
            self._held_at, self.sleeps = now, False
            return CHECK_EVERY
        self.sleeps = now - self._held_at > SLEEP_AFTER
        return LONGEST_SLEEP if self.sleeps else CHECK_EVERY_IDLE

    def _check(
        self, attempt: Attempt, now: float, unresponsive: list[Attempt]
    ) -> float:
        """Check a running handler; return the seconds until the next check."""
        if attempt.asked is StopReason.NOTHING:
            deadline = attempt.deadline
            if deadline is None:
                return CHECK_EVERY
            if now < deadline:
                return min(CHECK_EVERY, deadline - now)
            attempt.interrupt(StopReason.TIME_OUT)
        if attempt.asked is StopReason.STOP:  # then the supervisor watches the clock
            return CHECK_EVERY
        if attempt.unresponsive_at is not None and now >= attempt.unresponsive_at:
            unresponsive.append(attempt)
        return CHECK_EVERY

    @staticmethod
    def _check_outside_handler(
        executor: Executor,
        attempt: Attempt,
        now: float,
        unresponsive: list[Attempt],
    ) -> None:
        """Check an attempt whose handler has ended or has not started. Time in which
        others hold it up does not count."""
        seen = attempt.outside_handler_since
        if seen is None or seen[0] is not attempt.over:
            attempt.outside_handler_since = (attempt.over, now)
        elif executor.is_held_up(attempt):
            attempt.outside_handler_since = (
                attempt.over,
                min(now, seen[1] + CHECK_EVERY),
            )
        elif now - seen[1] > patience(attempt):
            unresponsive.append(attempt)


def waits_for_another(attempt: Attempt) -> bool:
    """True if it is async, and another attempt blocks their event loop."""
    if attempt.task is None:
        return False
    now = asyncio.current_task(attempt.task.get_loop())
    return now is not None and now is not attempt.task
