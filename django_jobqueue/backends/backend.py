"""The backend: tasks become jobs, and jobs results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.checks import CheckMessage

from django_jobqueue import signals
from django_jobqueue.backends import configured
from django_jobqueue.backends.compat import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from django_jobqueue.backends.immediate_records import kept_here
from django_jobqueue.backends.job_task import JobTask
from django_jobqueue.backends.restored_task import recorded, unchecked
from django_jobqueue.backends.results import JobTaskResult
from django_jobqueue.backends.task_declarations import declare, runner_at
from django_jobqueue.backends.task_enqueueing import Call, Enqueueing, enqueue_many
from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.option_checks import time_problem
from django_jobqueue.domain.policy import priority_problem, queue_problem
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler_functions import handler_problem, where
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.record import Record, record

_NUMBERS: Final = (int, float, Decimal)
_WHEN: Final = (datetime, timedelta)


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
        self._plain: dict[str, Enqueueing] = {}

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
        if problem := _problem(task):
            raise InvalidTask(problem)
        waits = isinstance(task.run_after, timedelta)
        try:
            super().validate_task(unchecked(task, run_after=None) if waits else task)
        except InvalidTask as error:
            if problem := handler_problem(task.func):
                raise InvalidTask(f"{error} {where(task.func)}: {problem}") from error
            raise
        declare(task, self.policy_options)

    @sync_only("aenqueue")
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

    @sync_only("aenqueue_many")
    def enqueue_many(self, calls: Iterable[Call]) -> list[JobTaskResult]:
        """Enqueue calls, each ``(task, args, kwargs)``; return their results, in order.

        All or none, in the caller's transaction. Raises what ``enqueue`` raises.
        """
        results = self._enqueue_many(calls)
        for result in results:
            signals.send(task_enqueued, type(self), task_result=result)
        return results

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[JobTaskResult]:
        """``enqueue_many`` for async code."""
        results = await sync_to_async(self._enqueue_many)(calls)
        for result in results:
            await signals.asend(task_enqueued, type(self), task_result=result)
        return results

    @sync_only("aget_result")
    def get_result(self, result_id: str) -> JobTaskResult:
        """The result with this id, with one query.

        Raises TaskResultDoesNotExist; and SuspiciousOperation for a job of a task whose
        module nobody imported here.
        """
        try:
            id = UUID(result_id)
        except (ValueError, AttributeError, TypeError) as error:
            raise TaskResultDoesNotExist(result_id) from error
        found = kept_here(id) if conf.mode != "queue" else record(DjangoDatabase(), id)
        if found is None:
            raise TaskResultDoesNotExist(result_id)
        return self._result(found)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """What is wrong with the settings of this backend."""
        return [*configured.check(self.alias, self._params, self.extra_options)]

    def _enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        used = self._used(task)
        job = used.enqueue(used.data(args, kwargs))
        if job.attempts or job.is_over:  # it was there already, or has run here
            return self.get_result(str(job.id))
        return used.result(job.id, job, args, kwargs)

    def _enqueue_many(self, calls: Iterable[Call]) -> list[JobTaskResult]:
        return enqueue_many(self._used, list(calls))

    def _used(self, task: Task) -> Enqueueing:
        """The task as it is used now, when the settings may have changed."""
        self.validate_task(task)
        known = self._plain.get(task.module_path)
        declaration = registry.get(task.module_path)
        if known and known.given is task and known.declaration is declaration:
            return known
        used = Enqueueing(task, self.alias, self.policy_options)
        if used.is_plain:
            self._plain[task.module_path] = used
        return used

    def _result(self, found: Record) -> JobTaskResult:
        known = registry.get(found.job.job_type)
        if known is not None and known.observer is None:
            raise TaskResultDoesNotExist(str(found.job.id))
        runner = runner_at(found.job.job_type)
        return recorded(found, runner.task, runner.parameters)


def _problem(task: Task) -> str | None:
    """What is wrong with the options that Django gives a task, if they are of a type
    that Django's own look at them cannot bear."""
    if not isinstance(task.priority, _NUMBERS):
        return f"priority {priority_problem(task.priority)}"
    if not isinstance(task.queue_name, str):
        return f"queue_name {queue_problem(task.queue_name)}"
    if task.run_after is None or isinstance(task.run_after, _WHEN):
        return None
    return time_problem("run_after", task.run_after, "a datetime or a timedelta")
