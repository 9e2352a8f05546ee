"""A worker whose process has other things to do, and goes on without it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import ClassVar, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.host.hangs import MARGIN
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.claiming.policies import Policies
from django_jobqueue.workers.timer import waits_for_another
from django_jobqueue.workers.worker import Worker, record_in_thread

logger = logging.getLogger("django_jobqueue.worker")

RECORDED_WITHIN: Final = 1.0  # seconds; the timer waits for it
NAMED: Final = 5  # jobs in a line of the log


class LeasedPolicies(Policies):
    """Nothing is run while the lease is in doubt: after a handler kept the interpreter
    for longer than that, the first to wake up may be the dispatcher."""

    is_leased: Callable[[], bool]

    def runs(self, job_type: str, *, is_async: bool) -> bool:
        """Whether this job type has a handler here, of this kind."""
        return super().runs(job_type, is_async=is_async) and self.is_leased()


class ThreadedWorker(Worker):
    """Where a worker process would end, this one has to clear up after itself."""

    _has_told_of_lock: ClassVar = False  # that a job held the interpreter's, to the log

    def __init__(self, config: WorkerConfig, *, is_leased: Callable[[], bool]) -> None:
        super().__init__(config)
        self.policies = policies = LeasedPolicies(registry, config.has_slots_for)
        policies.is_leased = is_leased
        self._looked_at = time.monotonic()

    def build(self) -> None:
        """Make the parts; nothing runs yet."""
        super().build()
        self.timer.looked = self._see_lock

    def end(self, timeout: float) -> None:
        """End the loops and the threads; close every connection.

        What still runs after ``timeout`` seconds goes on, since a thread cannot be
        killed; its outcome will be refused.
        """
        deadline = time.monotonic() + timeout
        self.stop(timeout)
        for executor in self.executors:
            executor.stop(max(0.1, deadline - time.monotonic()))
        for loop in (*self._loops, self.stack_dumper):
            if loop.has_started:
                loop.stop(max(0.1, deadline - time.monotonic()))
            else:
                loop.close()
        for attempt in list(self.held):
            if not attempt.over:
                logger.error(
                    "Job %s (%s) does not stop; it goes on in this process while "
                    "another worker may start it",
                    attempt.job.id,
                    attempt.job.job_type,
                )

    def _see_lock(self) -> None:
        """Tell once that a job has kept all other threads, this timer's among them,
        from running."""
        now, last = time.monotonic(), self._looked_at
        self._looked_at = now
        started = [attempt for attempt in list(self.held) if attempt.started]
        since = max(last, min((attempt.started for attempt in started), default=now))
        if now - since <= conf.cancel_grace + MARGIN or self._has_told_of_lock:
            return
        ThreadedWorker._has_told_of_lock = True
        logger.error(
            "For %.1f s no other thread of this process ran: a job holds the "
            "interpreter's lock. Its timeout cannot be enforced here, nor can the "
            "lease be renewed meanwhile: run such jobs with runworkers. Running: %s",
            now - since,
            ", ".join(f"{a.job.id} ({a.job.job_type})" for a in started[:NAMED]),
        )

    def _give_up(self, unresponsive: list[Attempt]) -> None:
        """Record them as what is known, or as timed out. Their slots are free when they
        do end."""
        for attempt in unresponsive:
            is_told = attempt in self.unresponsive or attempt.handed_over
            if is_told or waits_for_another(attempt):
                continue
            self.unresponsive.append(attempt)
            logger.error(
                "Job %s (%s) does not stop; %s, and its slot is lost until it ends. "
                "Restart this process to be rid of it",
                attempt.job.id,
                attempt.job.job_type,
                "its outcome is recorded"
                if attempt.over
                else "it is recorded as timed out",
            )
            record_in_thread(
                self.completer.add,
                [attempt],
                RECORDED_WITHIN,
                "its thread was given up",
            )

    def _break_down(self, why: str) -> None:
        """Tell once."""
        if self.problem is None:
            self.problem = why
            logger.error("%s. Restart this process to be rid of it", why.capitalize())
