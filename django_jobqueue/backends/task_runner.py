"""Runs tasks in a worker: calls their functions, and sends the framework's signals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from typing import Any, Final, NamedTuple

from asgiref.sync import sync_to_async

from django_jobqueue import signals
from django_jobqueue.backends.compat import (
    Task,
    TaskResult,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from django_jobqueue.backends.parameters import TaskParameters
from django_jobqueue.backends.results import (
    JobTaskContext,
    JobTaskResult,
    NotSerializable,
    finished_result,
    new_result,
    result_of_record,
    started_result,
    task_of_job,
)
from django_jobqueue.domain.arguments import from_json
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.json_values import result_problem
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import Fail, JobCancelled, JobExpired
from django_jobqueue.retries import function_problem
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.record import record

_FINAL: Final = (Verb.SUCCEED, Verb.FAIL, Verb.CANCEL, Verb.EXPIRE)
_INSTEAD: Final = {Verb.CANCEL: JobCancelled, Verb.EXPIRE: JobExpired}


class ConcealedError(Exception):
    """The error of a task with sensitive arguments, without their values."""


@dataclass(slots=True)
class CurrentAttempt:
    """The attempt of a task that runs in this context, or has just ended in it."""

    result: JobTaskResult
    error: BaseException | None = None


current_attempt: Final[ContextVar[CurrentAttempt | None]] = ContextVar(
    "jobqueue_task", default=None
)


@dataclass(frozen=True, slots=True)
class Runner:
    """Calls the function of a task, and sends the framework's signals."""

    task: Task  # the declared one
    parameters: TaskParameters
    conceals_errors: bool = field(default=False)  # they may contain sensitive arguments

    def function(self) -> Callable[..., Any]:
        """The function that the worker calls, with the context and the job's data."""

        @wraps(self.task.func)
        def run(context: Context, /, **data: Any) -> Any:
            now = CurrentAttempt(self._started(context, data))
            current_attempt.set(now)
            signals.send(task_started, _sender(now.result), task_result=now.result)
            args, kwargs = self._arguments(context, now.result)
            try:
                return _as_json(self.task.func(*args, **kwargs))
            except BaseException as error:
                now.error = error
                raise

        @wraps(self.task.func)
        async def arun(context: Context, /, **data: Any) -> Any:
            now = CurrentAttempt(await self._astarted(context, data))
            current_attempt.set(now)
            result = now.result
            await signals.asend(task_started, _sender(result), task_result=result)
            args, kwargs = self._arguments(context, result)
            try:
                return _as_json(await self.task.func(*args, **kwargs))
            except BaseException as error:
                now.error = error
                raise

        return arun if inspect.iscoroutinefunction(self.task.func) else run

    def on_finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> None:
        """Send ``task_finished`` if this was the last attempt."""
        result = self._finished(context, outcome, error)
        if result is None:
            return
        try:
            self._raise(outcome, error)
        except BaseException:  # the framework logs sys.exception()
            signals.send(task_finished, _sender(result), task_result=result)
        else:
            signals.send(task_finished, _sender(result), task_result=result)

    async def aon_finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> None:
        """``on_finished`` of an async task."""
        result = self._finished(context, outcome, error)
        if result is None:
            return
        try:
            self._raise(outcome, error)
        except BaseException:  # before Django 6.1, asend loses sys.exception()
            send = sync_to_async(signals.send)
            await send(task_finished, _sender(result), task_result=result)
        else:
            await signals.asend(task_finished, _sender(result), task_result=result)

    def _started(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        """The result with which the attempt begins. Only where there were earlier
        attempts does it cost a query."""
        result = self._result_of_first(context, data)
        if _has_past(context):
            row = record(DjangoDatabase(), context.id)
            result = (
                result_of_record(row, self.task, self.parameters) if row else result
            )
        elif context.attempt == 1:
            return result
        return started_result(result, context.worker, context.attempt)

    async def _astarted(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        if _has_past(context):
            return await sync_to_async(self._started)(context, data)
        return self._started(context, data)

    def _result_of_first(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        """The result with which a first attempt begins."""
        args, kwargs = self.parameters.call(data)
        task = task_of_job(
            self.task, data, queue=context.queue, priority=context.priority
        )
        return new_result(
            task,
            id=context.id,
            enqueued_at=context.created_at,
            args=args,
            kwargs=kwargs,
            worker=context.worker,
        )

    def _arguments(
        self, context: Context, result: JobTaskResult
    ) -> tuple[list[Any], dict[str, Any]]:
        if not self.task.takes_context:
            return result.args, result.kwargs
        first = JobTaskContext(task_result=result, job=context)
        return [first, *result.args], result.kwargs

    def _finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> JobTaskResult | None:
        """The result of a finished task; None if there will be another attempt."""
        now = current_attempt.get()
        current_attempt.set(None)
        if outcome.verb not in _FINAL:
            return None
        if now is not None and now.result.id == str(context.id):
            result = now.result
        else:  # it never began, or it hangs and another thread gave it up
            result = self._started(context, context.data)
        if outcome.verb is Verb.SUCCEED:
            value = None if outcome.result is None else from_json(outcome.result)
            return finished_result(result, None, value)
        failure = outcome.failure
        trace = f"{outcome.reason}\n" if failure is None else failure.traceback
        instead = _INSTEAD.get(outcome.verb)
        return finished_result(
            result, instead(outcome.reason) if instead else error, trace=trace
        )

    def _raise(self, outcome: Outcome, error: BaseException | None) -> None:
        """Raise the error that made the task fail, if there is one."""
        if outcome.verb is Verb.SUCCEED or error is None:
            return
        if self.conceals_errors and outcome.failure is not None:
            failure = outcome.failure
            raise ConcealedError(f"{failure.error_class}: {failure.message}")
        trace = error.__traceback__
        try:
            raise error
        finally:
            error.__traceback__ = trace


def _as_json(value: Any) -> Any:
    """The return value of a task, as JSON holds it."""
    try:
        return normalize_json(value)
    except (TypeError, ValueError) as error:
        why = result_problem(value, "it") or ""
        raise NotSerializable(
            f"The return value of the task is not JSON serializable: {why} ({error})"
        ) from None


def _sender(result: JobTaskResult) -> object:
    """The class of the backend that enqueued the task."""
    return type(task_backends[result.backend])


def _has_past(context: Context) -> bool:
    """True if earlier attempts are in the database. A job that ran at its enqueue has
    no fence and no row."""
    return bool(context.fence and (context.attempt > 1 or context.crashes))


class BackoffByError(NamedTuple):
    """Django's ``f(exception, task_result)`` as a backoff of a job type."""

    func: Callable[[BaseException, TaskResult], float | timedelta | None]

    def __call__(
        self, attempt: int, exception: BaseException, job: Context
    ) -> float | timedelta | None:
        """The wait after the attempt that has just ended here. Raises Fail if the
        function allows no further one."""
        now = current_attempt.get()
        if now is None or now.result.id != str(job.id):  # the task did not begin
            return None
        wait = self.func(exception, now.result)
        if wait is None:
            raise Fail("the backoff returned None")
        return wait


def as_backoff(value: Any) -> Any:
    """The value as a backoff of a job type: a function of two arguments gets the error
    and the result."""
    if not callable(value) or function_problem(value) is None:
        return value
    try:
        inspect.signature(value).bind(None, None)
    except (TypeError, ValueError):
        return value
    return BackoffByError(value)
