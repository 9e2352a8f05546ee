"""Watches running attempts: times them out, and gives up those that do not stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes.loop import Loop
from django_jobqueue.workers.executors.base import Executor, patience

EVERY: Final = 0.25  # seconds, while something runs or is about to
RESTING: Final = 1.0
WAKEFUL: Final = 15.0  # seconds after the last job until it sleeps
SLEEPING: Final = 60.0  # at most, should nobody have been able to wake it


class Timer(Loop):
    """First interrupts a handler that is late; if it goes on, has its process replaced,
    because a thread cannot be killed.

    An attempt is watched from when it has its slot until it gives it back. What comes
    before its handler and after it has a bound, too: receivers of signals, the text of
    an exception and the cleaning of connections are code of the project.
    """

    name = "timer"

    def __init__(
        self,
        executors: Sequence[Executor],
        held: Collection[Attempt],
        on_unresponsive: Callable[[list[Attempt]], None],
        on_broken: Callable[[str], None] = lambda why: None,
    ) -> None:
        super().__init__()
        self.on_checked: Callable[[], None] = lambda: None  # called after each look
        self._executors = executors
        self._held = held  # all jobs that this process has
        self._on_unresponsive = on_unresponsive
        self._on_broken = on_broken  # an executor cannot go on
        self._held_at = time.monotonic()
        self._sleeps = False

    def rouse(self) -> None:
        """Something is held: end a long rest."""
        if self._sleeps:
            self.wake()

    def tick(self) -> float:
        """Look at everything that runs."""
        now = time.monotonic()
        lost: list[Attempt] = []
        soonest = self._longest_wait(now)
        for executor in self._executors:
            for attempt in executor.running:
                if attempt.over or not attempt.started:
                    self._check_beside(executor, attempt, now, lost)
                else:
                    soonest = min(soonest, self._check(attempt, now, lost))
            if why := executor.problem(now):
                self._on_broken(why)
        if lost:
            self._on_unresponsive(lost)
        self.on_checked()
        return max(soonest, 0.005)

    def _longest_wait(self, now: float) -> float:
        self._sleeps = True  # said first: see Activity
        if self._held:
            self._held_at, self._sleeps = now, False
            return EVERY
        self._sleeps = now - self._held_at > WAKEFUL
        return SLEEPING if self._sleeps else RESTING

    def _check(self, attempt: Attempt, now: float, lost: list[Attempt]) -> float:
        """Returns in how many seconds to look again."""
        if attempt.asked is StopReason.NOTHING:
            deadline = attempt.deadline
            if deadline is None:
                return EVERY
            if now < deadline:
                return min(EVERY, deadline - now)
            attempt.interrupt(StopReason.TIME_OUT)
        if attempt.asked is StopReason.STOP:  # then the supervisor watches the clock
            return EVERY
        if attempt.unresponsive_at is not None and now >= attempt.unresponsive_at:
            lost.append(attempt)
        return EVERY

    @staticmethod
    def _check_beside(
        executor: Executor, attempt: Attempt, now: float, lost: list[Attempt]
    ) -> None:
        """At one whose handler has ended, or has not started. Time in which others hold
        it up does not count."""
        seen = attempt.seen_beside
        if seen is None or seen[0] is not attempt.over:
            attempt.seen_beside = (attempt.over, now)
        elif executor.is_held_up(attempt):
            attempt.seen_beside = (attempt.over, min(now, seen[1] + EVERY))
        elif now - seen[1] > patience(attempt):
            lost.append(attempt)


def waits_for_another(attempt: Attempt) -> bool:
    """Whether it is async, and another one keeps their event loop from going on."""
    if attempt.task is None:
        return False
    now = asyncio.current_task(attempt.task.get_loop())
    return now is not None and now is not attempt.task
