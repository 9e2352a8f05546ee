"""Second checks of jobs that another host was told of, in case it does not react."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence, Set
from typing import Final

from django_jobqueue.store.notify import JobElsewhere

WAIT: Final = 0.2  # seconds that the other host has
DISTRUSTED_FOR: Final = 10.0  # seconds that a host is not waited for that did not react
MOST: Final = 1_000  # jobs; whoever finds these finds others as well


class SecondChecks:
    """Remembers for a moment which jobs other hosts were told of.

    If one of them still waits then, workers of this host are woken. If that helped, the
    other host is not waited for, for a while: it is stopped, dead or cut off. If not,
    nobody can start the job now.
    """

    def __init__(self) -> None:
        self._heard: list[tuple[float, JobElsewhere]] = []  # with time.monotonic()
        self._late: dict[str, str] = {}  # ids of jobs that still waited, with the host
        self._distrusted: dict[str, float] = {}  # hosts, until time.monotonic()
        self._due_at = math.inf

    @property
    def seconds_until_due(self) -> float:
        """Until ``check()`` is to be called; infinite if there is nothing to check."""
        return max(0.0, self._due_at - time.monotonic())

    def must_act(self, job: JobElsewhere) -> bool:
        """True if workers of this host are to be woken at once; else the job is
        remembered."""
        now = time.monotonic()
        if now < self._distrusted.get(job.host, -math.inf):
            return True
        if len(self._heard) < MOST:
            self._heard.append((now, job))
            self._due_at = min(self._due_at, now + WAIT)
        return False

    def check(self, still_wait: Callable[[Sequence[str]], Set[str]]) -> bool:
        """True if workers of this host are to be woken for some of the jobs, whose ids
        ``still_wait``."""
        now = time.monotonic()
        if now < self._due_at:
            return False
        hosts = {job.id: job.host for at, job in self._heard if at + WAIT <= now}
        self._heard = [(at, job) for at, job in self._heard if at + WAIT > now]
        waiting = still_wait([*hosts, *self._late])
        for id, host in self._late.items():
            if id not in waiting:
                self._distrust(host, now)
        self._late = {id: host for id, host in hosts.items() if id in waiting}
        due = [at + WAIT for at, _ in self._heard] + [now + WAIT] * bool(self._late)
        self._due_at = min(due, default=math.inf)
        return bool(self._late)

    def _distrust(self, host: str, now: float) -> None:
        self._distrusted = {h: end for h, end in self._distrusted.items() if end > now}
        self._distrusted[host] = now + DISTRUSTED_FOR
