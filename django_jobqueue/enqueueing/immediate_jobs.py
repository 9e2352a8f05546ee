"""The jobs of the modes ``immediate`` and ``on_commit``: in the memory of this process,
not in a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from django_jobqueue import signals
from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.exceptions import AlreadyArchived, UnknownJobType
from django_jobqueue.store.queue.insert import inserted_job
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.store.rows import Job

LARGEST: Final = 1_000  # jobs; older ones are forgotten


@dataclass(slots=True)
class MemoryRecord:
    """A job in its current state, and what is needed to run it."""

    job: Job
    new: NewJob
    declaration: Declaration
    text: str  # JSON of the data


class Memory:
    """The jobs that this process enqueued in these modes, oldest first."""

    def __init__(self) -> None:
        self.run: Callable[[MemoryRecord], None] | None = None  # apps.py sets it
        self._records: dict[UUID, MemoryRecord] = {}
        self.also_clear: list[Callable[[], None]] = []  # what features keep in memory

    def __iter__(self) -> Any:
        return iter(list(self._records.values()))

    def take(
        self,
        new: NewJob,
        declaration: Declaration | None,
        id: UUID,
        data: Any,
        text: str,
    ) -> Job:
        """Enqueue a job: run it now, or when the transaction commits.

        Returns the job in its state after that. Raises the error of its handler,
        UnknownJobType, and AlreadyArchived.
        """
        if declaration is None:
            raise UnknownJobType(new.job_type, registry.near(new.job_type))
        if self.run is None:
            raise ImproperlyConfigured(
                f"JOBQUEUE['MODE'] is {conf.mode!r}: add 'django_jobqueue' to "
                "INSTALLED_APPS, and enqueue when Django is set up."
            )
        held = self.find(id)
        if held is not None:
            if held.is_over:
                raise AlreadyArchived(id, held.status)
            return held
        record = self._add(MemoryRecord(_job(new, id, data), new, declaration, text))
        if signals.job_enqueued.receivers:
            sender = registry.sender(new.job_type)
            signals.send(
                signals.job_enqueued, sender, job_type=new.job_type, job=record.job
            )
        if conf.mode == "on_commit":
            transaction.on_commit(partial(self.run, record), using=conf.database)
        else:
            self.run(record)
        return record.job

    def find(self, id: UUID) -> Job | None:
        """The job with this id; None if it is unknown or forgotten."""
        record = self._records.get(id)
        return None if record is None else record.job

    def clear(self) -> None:
        """Forget all jobs, and what features keep."""
        self._records.clear()
        for clear in self.also_clear:
            clear()

    def _add(self, record: MemoryRecord) -> MemoryRecord:
        while len(self._records) >= LARGEST:
            del self._records[next(iter(self._records))]
        self._records[record.job.id] = record
        return record


def _job(new: NewJob, id: UUID, data: Any) -> Job:
    """The job as a row of the queue would hold it."""
    now = datetime.now(UTC)
    run_after = max(new.run_after or now, now + new.delay)
    priorities = (new.priority, new.declared_priority, 0)
    expires_at = new.expires_at
    if expires_at is None and new.expires_in is not None:
        expires_at = run_after + min(new.expires_in, READABLE[1] - run_after)
    row = (
        new.queue or "default",
        next(p for p in priorities if p is not None),
        run_after,
        expires_at,
        now,
    )
    return inserted_job(new, id, data, row)


memory: Final = Memory()
