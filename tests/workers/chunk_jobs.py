"""Jobs of the queue's own that work for some seconds, then hand over to another one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils import timezone

from django_jobqueue.domain.context import Context
from django_jobqueue.operations.chunked_work import JOB_SECONDS, ChunkedWork

# Seconds between two looks at the clock, of which few fit into the time of a job.
SHORT = JOB_SECONDS / 3


class Clock:
    """Time that passes when somebody rests, and a little with every look."""

    def __init__(self, step: float = 0.01) -> None:
        self.now = 0.0
        self.step = step
        self.rests: list[float] = []

    def __call__(self) -> float:
        self.now += self.step
        return self.now

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


def context_of(job: UUID | None, **values: Any) -> Context:
    """What a job with this id is given."""
    defaults: dict[str, Any] = {
        "id": job,
        "job_type": "jobqueue.bulk",
        "queue": "default",
        "attempt": 1,
        "max_attempts": 10,
        "crashes": 0,
        "data": {},
        "run_after": timezone.now(),
        "created_at": timezone.now(),
        "worker": "host:1",
    }
    return Context(**{**defaults, **values})


def cancelled(context: Context) -> Context:
    """The same, whose worker was asked to stop it."""
    context._cancelled = True  # private: of what an attempt sets, as of a thread
    return context


class Jobs:
    """The jobs of a row of this model, each of which works for some seconds."""

    def __init__(self, work: ChunkedWork[Any], model: Any) -> None:
        self._work = work
        self._rows = model.objects

    def of(self, id: UUID, **values: Any) -> Context:
        """What the job of this row is given."""
        return context_of(self._rows.get(pk=id).job_id, **values)

    def work(
        self, id: UUID, step: float = 0.01, job: Context | None = None, **values: Any
    ) -> Clock:
        """Run it, or this job; ``step`` is the time between two looks at the clock."""
        clock = Clock(step)
        context = job or self.of(id, **values)
        self._work.run_job(context, id, clock=clock, sleep=clock.sleep)
        return clock
