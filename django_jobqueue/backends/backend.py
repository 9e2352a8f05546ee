"""The backend for Django's tasks: it enqueues jobs, and reads their results."""

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
from django_jobqueue.backends.compat import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from django_jobqueue.backends.job_task import JobTask
from django_jobqueue.backends.results import (
    JobTaskResult,
    immediate_record,
    replace_unvalidated,
    result_of_record,
)
from django_jobqueue.backends.task_declarations import (
    check_alias,
    declare,
    options_of_alias,
    runner_of_job_type,
    valid_options,
)
from django_jobqueue.backends.task_enqueueing import Call, TaskEnqueuer, enqueue_many
from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.option_checks import time_problem
from django_jobqueue.domain.policy import priority_problem, queue_problem
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler_functions import handler_problem, where
from django_jobqueue.enqueueing.scheduling import ScheduledCall, schedule_of
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.record import Record, record

_NUMBERS: Final = (int, float, Decimal)
_WHEN: Final = (datetime, timedelta)


class JobQueueBackend(BaseTaskBackend):
    """Runs tasks as jobs of the job queue: ``manage.py runworkers``.

    OPTIONS takes the options of ``@job``, as defaults for the tasks of the alias. A
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
        self._enqueuers: dict[str, TaskEnqueuer] = {}

    @cached_property
    def policy_options(self) -> dict[str, Any]:
        """The job options in the settings, without invalid ones."""
        given = options_of_alias(self._params)
        ours = {k: v for k, v in given.items() if k not in self.extra_options}
        return valid_options(ours)

    def validate_task(self, task: Task) -> None:
        """Check that this backend can run the task, and make the task a job type.

        Raises InvalidTask.
        """
        if problem := _problem(task):
            raise InvalidTask(problem)
        waits = isinstance(task.run_after, timedelta)
        try:
            checked = replace_unvalidated(task, run_after=None) if waits else task
            super().validate_task(checked)
        except InvalidTask as error:
            if problem := handler_problem(task.func):
                raise InvalidTask(f"{error} {where(task.func)}: {problem}") from error
            raise
        declare(task, self.policy_options)

    def at(
        self, task: Task, rule: object, options: dict[str, Any]
    ) -> ScheduledCall[...]:
        """A schedule of the task, which still needs its arguments."""
        enqueuer = self._enqueuer(task)
        schedule = schedule_of(
            enqueuer.declaration.name, rule, enqueuer.enqueuer.options, options
        )
        return ScheduledCall(schedule, enqueuer.data)

    @sync_only("aenqueue")
    def enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        """Enqueue a call of the task, in the caller's transaction, with one INSERT.

        Raises InvalidTask; TypeError for arguments that do not fit the function or are
        no JSON; InvalidArguments for arguments that JSON would change.
        """
        result = self._enqueue(task, args, kwargs)
        signals.send(task_enqueued, type(self), task_result=result)
        return result

    async def aenqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        """``enqueue`` for async code; it awaits the receivers of the signal."""
        result = await sync_to_async(self._enqueue)(task, args, kwargs)
        await signals.asend(task_enqueued, type(self), task_result=result)
        return result

    @sync_only("aenqueue_many")
    def enqueue_many(self, calls: Iterable[Call]) -> list[JobTaskResult]:
        """Enqueue calls, each ``(task, args, kwargs)``; return their results, in order.

        All or none, in the caller's transaction. Raises the errors of ``enqueue``.
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

        Raises TaskResultDoesNotExist, and SuspiciousOperation for a job of a task whose
        module is not imported here.
        """
        try:
            id = UUID(result_id)
        except (ValueError, AttributeError, TypeError) as error:
            raise TaskResultDoesNotExist(result_id) from error
        is_queued = conf.mode == "queue"
        row = record(DjangoDatabase(), id) if is_queued else immediate_record(id)
        if row is None:
            raise TaskResultDoesNotExist(result_id)
        return self._result(row)

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        """The problems of this backend's settings."""
        return [*check_alias(self.alias, self._params, self.extra_options)]

    def _enqueue(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> JobTaskResult:
        enqueuer = self._enqueuer(task)
        job = enqueuer.enqueue(enqueuer.data(args, kwargs))
        if job.attempts or job.is_over:  # a duplicate of an older job, or it ran here
            return self.get_result(str(job.id))
        return enqueuer.result(
            job.id,
            job,
            args,
            kwargs,
            is_new=job.is_new,
            is_replaced=job.is_replaced,
        )

    def _enqueue_many(self, calls: Iterable[Call]) -> list[JobTaskResult]:
        return enqueue_many(self._enqueuer, list(calls))

    def _enqueuer(self, task: Task) -> TaskEnqueuer:
        """The enqueuer of this task; a new one if settings or declaration changed."""
        self.validate_task(task)
        known = self._enqueuers.get(task.module_path)
        declaration = registry.get(task.module_path)
        if known and known.given is task and known.declaration is declaration:
            return known
        enqueuer = TaskEnqueuer(task, self.alias, self.policy_options)
        if enqueuer.is_reusable:
            self._enqueuers[task.module_path] = enqueuer
        return enqueuer

    def _result(self, row: Record) -> JobTaskResult:
        known = registry.get(row.job.job_type)
        if known is not None and known.observer is None:
            raise TaskResultDoesNotExist(str(row.job.id))
        runner = runner_of_job_type(row.job.job_type)
        return result_of_record(row, runner.task, runner.parameters)


def _problem(task: Task) -> str | None:
    """The problem of an option whose type makes Django's own validation raise another
    error than InvalidTask."""
    if not isinstance(task.priority, _NUMBERS):
        return f"priority {priority_problem(task.priority)}"
    if not isinstance(task.queue_name, str):
        return f"queue_name {queue_problem(task.queue_name)}"
    if task.run_after is None or isinstance(task.run_after, _WHEN):
        return None
    return time_problem("run_after", task.run_after, "a datetime or a timedelta")
