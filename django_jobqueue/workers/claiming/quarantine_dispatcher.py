"""Claims quarantined jobs, which run alone in their process, one at a time."""

from __future__ import annotations

from typing import Final

from django_jobqueue.workers.claiming.dispatcher import Dispatcher

CLAIM_EVERY: Final = 0.05  # seconds


class QuarantineDispatcher(Dispatcher):
    """For a process that runs one quarantined job at a time: if this process dies, too,
    the job is to blame."""

    name = "dispatcher of jobs that run alone"

    def _readiness(self, seconds: float) -> int:
        """It looks often, and for other jobs."""
        return 0

    def _work(self) -> float:
        """Claim the next one, when nothing is held."""
        finished, self._idle_at = self._finished, None
        self.rounds += 1
        self._catch_up()
        if not self._known.is_open:
            return self._stopped_wait()
        if self.claimer.holds_any:
            return CLAIM_EVERY
        attempt = self.claimer.take_quarantined()
        if attempt is None:
            self._idle_at = finished
        else:
            is_async = attempt.declaration.is_async
            executor = next(e for e in self.executors if e.is_async is is_async)
            executor.put([attempt])
        return CLAIM_EVERY
