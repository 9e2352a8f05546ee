"""Whether an embedded worker has nothing to do."""

from __future__ import annotations

from django_jobqueue.embedded.lifecycle import WorkerLifecycle
from django_jobqueue.embedded.supervisor import EmbeddedSupervisor

SHOWN = 5  # jobs


class Idleness:
    """Of one who waits for it: that the worker held nothing and found nothing counts
    from when it was first asked."""

    def __init__(self, supervisor: EmbeddedSupervisor) -> None:
        self._supervisor = supervisor
        self._lifecycle: WorkerLifecycle | None = None
        self._asked_at = 0  # rounds of the dispatcher

    def has_come(self) -> bool:
        """Whether a look that began since found nothing to do; has it look if not."""
        lifecycle = self._supervisor.lifecycle
        if lifecycle is None or len(self._supervisor.lives) > 1:
            return False
        dispatcher = lifecycle.worker.dispatcher
        if lifecycle is not self._lifecycle:
            self._lifecycle, self._asked_at = lifecycle, dispatcher.rounds
            dispatcher.jobs_arrived(behind=True)
            return False
        if dispatcher.rounds == self._asked_at:
            return False
        if lifecycle.worker.is_idle:
            return True
        if lifecycle.worker.is_empty:
            dispatcher.wake()  # does what it finished allow something else?
        return False

    @property
    def what_goes_on(self) -> str:
        """For people: what it does instead."""
        lifecycle = self._lifecycle
        if lifecycle is None:
            return "the worker has not started; is the database there, and migrated?"
        if lifecycle.is_paused:
            return "the worker is paused by an operator"
        held = sorted(lifecycle.worker.held, key=lambda attempt: attempt.claimed)
        if not held:
            return "the worker still finds jobs that it could claim"
        shown = [f"{a.job.id} ({a.job.job_type})" for a in held[:SHOWN]]
        more = ", …" if len(held) > SHOWN else ""
        return f"the worker still has {len(held)} jobs: {', '.join(shown)}{more}"
