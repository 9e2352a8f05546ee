"""The backend: tasks become jobs, and jobs results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage

from django_jobqueue import signals
from django_jobqueue.backends import configured
from django_jobqueue.backends.compat import (
    BaseTaskBackend,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from django_jobqueue.backends.declared import declare, runner_at
from django_jobqueue.backends.enqueueing import Enqueueing
from django_jobqueue.backends.job_task import JobTask
from django_jobqueue.backends.restoring import recorded, unchecked
from django_jobqueue.backends.results import JobTaskResult, new_result
from django_jobqueue.registry import registry
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.record import Record, record

Call = tuple[Task, Sequence[Any], Mapping[str, Any]]


class JobQueueBackend(BaseTaskBackend):
    """Runs tasks as jobs of the job queue: ``manage.py runworkers``.

    OPTIONS may have the options of ``@job``, as defaults of the alias's tasks. A
    subclass with options of its own names them in ``extra_options``.
    """

    task_class = JobTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    extra_options: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._params = params

    @cached_property
    def policy_options(self) -> dict[str, Any]:
        """The options of jobs that the settings give, without those that are wrong."""
        given = configured.given(self._params)
        mine = {k: v for k, v in given.items() if k not in self.extra_options}
        return configured.usable(mine)

    def validate_task(self, task: Task) -> None:
        """Whether this backend can run the task; where it can, it is a job type.

        Raises InvalidTask.
        """
        waits = isinstance(task.run_after, timedelta)
        super().validate_task(unchecked(task, run_after=None) if waits else task)
        declare(task, self.policy_options)

    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        """Enqueue a call of the task, in the caller's transaction, with one INSERT.

        Raises InvalidTask; TypeError for arguments that do not fit the function, or
        that JSON lacks; InvalidArguments for others that would not survive.
        """
        result = self._enqueue(task, args, kwargs)
        signals.send(task_enqueued, type(self), task_result=result)
        return result

    async def aenqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        """``enqueue`` for async code; receivers of the signal are awaited here."""
        result = await sync_to_async(self._enqueue)(task, args, kwargs)
        await signals.asend(task_enqueued, type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> JobTaskResult:
        """The result with this id, with one query.

        Raises TaskResultDoesNotExist; and SuspiciousOperation for a job whose type
        says that it is a task where none is allowed to be.
        """
        try:
            id = UUID(result_id)
        except (ValueError, AttributeError, TypeError) as error:
            raise TaskResultDoesNotExist(result_id) from error
        found = record(DjangoDatabase(), id)
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return self._result(found)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """What is wrong with the settings of this backend."""
        return [*configured.check(self.alias, self._params, self.extra_options)]

    def _enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        self.validate_task(task)
        calls = Enqueueing(task, self.alias, self.policy_options)
        job = calls.producer.enqueue(calls.data(args, kwargs))
        if job.attempts or job.is_over:
            return self.get_result(str(job.id))
        used = unchecked(calls.task, priority=job.priority, queue_name=job.queue)
        return new_result(
            used, id=job.id, enqueued_at=job.created_at, args=args, kwargs=kwargs
        )

    def _result(self, found: Record) -> JobTaskResult:
        known = registry.get(found.job_type)
        if known is not None and known.ending is None:
            raise TaskResultDoesNotExist(str(found.id))
        runner = runner_at(found.job_type, found.handler)
        return recorded(found, runner.task, runner.parameters)
