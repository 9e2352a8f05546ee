"""The limits at which a worker process is to be replaced: jobs, age, memory."""

from __future__ import annotations

import logging
import math
import os
import random
import time
from dataclasses import dataclass
from typing import Final, Self

from django_jobqueue.conf import conf
from django_jobqueue.processes import identity

logger = logging.getLogger("django_jobqueue.worker")

SPREAD: Final = 0.1  # of a limit, so that siblings are not replaced at the same time
CHECK_EVERY: Final = 1.0  # seconds between looks at the memory
GROWTH: Final = 1.25  # a process may become this much larger than it began, at least


@dataclass(slots=True)
class ProcessLimits:
    """Those of one process."""

    jobs: float  # attempts
    age: float  # time.monotonic()
    memory: float  # bytes
    next_check: float = 0.0  # time.monotonic()

    @classmethod
    def of_settings(cls) -> Self | None:
        """Those that are set; None if none is."""
        if conf.max_jobs is None and conf.max_age is None and conf.max_memory is None:
            return None
        age = math.inf if conf.max_age is None else _spread(conf.max_age)
        return cls(
            jobs=math.inf if conf.max_jobs is None else _spread(conf.max_jobs),
            age=time.monotonic() + age,
            memory=math.inf if conf.max_memory is None else _memory(conf.max_memory),
        )

    def exceeded(self, *, finished: int) -> str:
        """The name of the setting whose limit is reached after so many attempts; empty
        if none is."""
        now = time.monotonic()
        if finished >= self.jobs:
            return "MAX_JOBS"
        if now >= self.age:
            return "MAX_AGE"
        if self.memory < math.inf and now >= self.next_check:
            self.next_check = now + CHECK_EVERY
            if identity.rss(os.getpid()) > self.memory:
                return "MAX_MEMORY"
        return ""


def _spread(limit: float) -> float:
    return limit * random.uniform(1 - SPREAD, 1 + SPREAD)


def _memory(limit: int) -> float:
    """A process that begins with more would be replaced again and again."""
    least = identity.rss(os.getpid()) * GROWTH
    if limit < least:
        logger.warning(
            "MAX_MEMORY is %d MB, but a worker process begins with %d MB; it is "
            "replaced when it has %d MB",
            limit >> 20,
            int(least / GROWTH) >> 20,
            int(least) >> 20,
        )
    return max(_spread(limit), least)
