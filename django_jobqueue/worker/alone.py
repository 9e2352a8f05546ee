"""Claims the jobs that run alone in their process, one at a time."""

from __future__ import annotations

import time

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import claim
from django_jobqueue.worker.dispatcher import Dispatcher
from django_jobqueue.worker.loop import FOREVER


class AloneDispatcher(Dispatcher):
    """For the process in which a job runs that was there when its workers died: if this
    one dies as well, it was that job."""

    name = "dispatcher of jobs that run alone"

    def tick(self) -> float:
        """Claim the next one, when nothing is held."""
        self._set_straight()
        if self._held or not self._open:
            return FOREVER if not self._open else 0.05
        if self._reload:
            self._load_policies()
        now = time.monotonic()
        try:
            jobs = claim.claim_alone(
                self._connection, self._worker, self._policies.names, self._queues
            )
        except StoreUnavailable:
            self._in_doubt = True
            raise
        self.is_idle = not jobs
        for job in jobs:
            attempt = self._make(job, now)
            self._held[job.id] = attempt
            is_async = attempt.declaration.is_async
            executor = next(e for e in self.executors if e.is_async is is_async)
            executor.put([attempt])
        return 0.05
