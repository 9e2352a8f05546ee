"""Captures the jobs that are enqueued in a block of code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload
from uuid import UUID

from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.store.rows import Job
from django_jobqueue.testing.savepoints import is_broken
from django_jobqueue.testing.visible_jobs import known_name_of, seen


class CapturedJobs(Sequence[Job]):
    """Jobs, oldest first: inside the block as they are now, after it as they were at
    its end."""

    def __init__(self, before: set[UUID]) -> None:
        self._before = before
        self._frozen: list[Job] | None = None

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        return self._jobs()[index]

    def __len__(self) -> int:
        return len(self._jobs())

    def __repr__(self) -> str:
        return repr(self._jobs())

    def of(self, handler: Any) -> list[Job]:
        """The jobs of this handler, task, or name of a job type."""
        name = known_name_of(handler)
        return [job for job in self._jobs() if job.job_type == name]

    def keep(self) -> None:
        """Freeze them as they are now."""
        self._frozen = self._jobs()

    def _jobs(self) -> list[Job]:
        if self._frozen is not None:
            return self._frozen
        return [one for one in seen() if one.id not in self._before]


@contextmanager
def captured_jobs() -> Iterator[CapturedJobs]:
    """Collect the jobs that a block enqueues, in any way.

    ::

        with captured_jobs() as jobs:
            checkout(order)
        assert [job.data for job in jobs] == [{"order_id": 7}]

    Rolled back jobs are not among them.
    """
    captured = CapturedJobs({one.id for one in seen()})
    try:
        yield captured
    finally:
        if not is_broken(connections[conf.database]):
            captured.keep()
