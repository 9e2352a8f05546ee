"""What stands in Django's tests for Django's own backends: ours, in both roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.test import SimpleTestCase

from django_jobqueue.backends import JobQueueBackend, JobTask, JobTaskResult
from django_jobqueue.backends.compat import (
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResultDoesNotExist,
    TaskResultMismatch,
)
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob
from django_jobqueue.testing import drain

__all__ = [
    "BaseTaskBackend",
    "DatabaseTestCase",
    "DummyBackend",
    "ImmediateBackend",
    "InvalidTask",
    "InvalidTaskBackend",
    "JobTask",
    "Task",
    "TaskResultDoesNotExist",
    "TaskResultMismatch",
]


def clear() -> None:
    """Forget every job."""
    for model in (QueuedJob, ArchivedJob, Failure):
        model.objects.all().delete()


class DatabaseTestCase(SimpleTestCase):
    """A test that may use the database, and finds no job in it."""

    databases = {"default"}

    def setUp(self) -> None:
        clear()


class DummyBackend(JobQueueBackend):
    """Enqueues, and shows what it enqueued, as Django's dummy backend does."""

    def clear(self) -> None:
        clear()

    @property
    def results(self) -> list[JobTaskResult]:
        ids = QueuedJob.objects.order_by("id").values_list("id", flat=True)
        return [self.get_result(str(id)) for id in ids]


class ImmediateBackend(JobQueueBackend):
    """Lets a worker run what it enqueued before it returns."""

    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        result = super().enqueue(task, args, kwargs)
        drain(raise_errors=False)
        result.refresh()
        return result

    async def aenqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        result = await super().aenqueue(task, args, kwargs)
        await sync_to_async(drain)(raise_errors=False)
        await result.arefresh()
        return result


BaseTaskBackend = JobQueueBackend  # of the custom backends
