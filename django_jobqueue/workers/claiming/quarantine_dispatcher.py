"""Claims quarantined jobs, which run alone in their process, one at a time."""

from __future__ import annotations

from typing import Final

from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.workers.claiming.dispatcher import Dispatcher

EVERY: Final = 0.05  # seconds


class QuarantineDispatcher(Dispatcher):
    """For the process in which a job runs that was there when its workers died: if this
    one dies as well, it was that job."""

    name = "dispatcher of jobs that run alone"

    def tick(self) -> float:
        """Claim the next one, when nothing is held."""
        ends, self._idle_at = self._ends, None
        self.rounds += 1
        self._set_straight()
        if not self._open:
            return FOREVER
        if self._claimer.holds_any:
            return EVERY
        attempt = self._claimer.take_quarantined()
        if attempt is None:
            self._idle_at = ends
        else:
            is_async = attempt.declaration.is_async
            executor = next(e for e in self.executors if e.is_async is is_async)
            executor.put([attempt])
        return EVERY
