"""How a worker runs a task: the function that its job type has, and what is said of it
to the framework's signals."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final

from asgiref.sync import sync_to_async

from django_jobqueue import signals
from django_jobqueue.backends.compat import (
    Task,
    normalize_json,
    task_backends,
    task_finished,
    task_started,
)
from django_jobqueue.backends.parameters import TaskParameters
from django_jobqueue.backends.restored_task import recorded, restored
from django_jobqueue.backends.results import (
    JobTaskContext,
    JobTaskResult,
    NotSerializable,
    finished_result,
    new_result,
    started_result,
)
from django_jobqueue.domain.arguments import from_json, result_problem
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import JobCancelled, JobExpired
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.record import record

_FINAL: Final = (Verb.SUCCEED, Verb.FAIL, Verb.CANCEL, Verb.EXPIRE)
_INSTEAD: Final = {Verb.CANCEL: JobCancelled, Verb.EXPIRE: JobExpired}


class Concealed(Exception):
    """What a task with sensitive arguments raised, without their values."""


@dataclass(slots=True)
class Here:
    """The attempt of a task that runs here, or has just ended here."""

    result: JobTaskResult
    error: BaseException | None = None


here: Final[ContextVar[Here | None]] = ContextVar("jobqueue_task", default=None)


@dataclass(frozen=True, slots=True)
class Runner:
    """Calls the function of a task, and tells the framework's signals."""

    task: Task  # as it is declared
    parameters: TaskParameters
    secretive: bool = field(default=False)  # its errors may have secrets

    def function(self) -> Callable[..., Any]:
        """What the worker calls, with its context and the job's data."""

        @wraps(self.task.func)
        def run(context: Context, /, **data: Any) -> Any:
            now = Here(self._started(context, data))
            here.set(now)
            signals.send(task_started, _sender(now.result), task_result=now.result)
            args, kwargs = self._arguments(context, now.result)
            try:
                return _kept(self.task.func(*args, **kwargs))
            except BaseException as error:
                now.error = error
                raise

        @wraps(self.task.func)
        async def arun(context: Context, /, **data: Any) -> Any:
            now = Here(await self._astarted(context, data))
            here.set(now)
            result = now.result
            await signals.asend(task_started, _sender(result), task_result=result)
            args, kwargs = self._arguments(context, result)
            try:
                return _kept(await self.task.func(*args, **kwargs))
            except BaseException as error:
                now.error = error
                raise

        return arun if inspect.iscoroutinefunction(self.task.func) else run

    def on_finished(
        self, context: Context, outcome: Outcome, error: BaseException | None
    ) -> None:
        """An attempt came to this; tell it if it was the last one."""
        result = self._finished(context, outcome, error)
        if result is None:
            return
        try:
            self._raise(outcome, error)
        except BaseException:  # where the framework's log lines look for it
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
        except BaseException:  # before Django 6.1, asend loses sight of it
            send = sync_to_async(signals.send)
            await send(task_finished, _sender(result), task_result=result)
        else:
            await signals.asend(task_finished, _sender(result), task_result=result)

    def _started(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        """The result that the attempt begins with. What earlier attempts came to is
        looked up; most have none."""
        result = self._first(context, data)
        if _has_past(context):
            found = record(DjangoDatabase(), context.id)
            result = recorded(found, self.task, self.parameters) if found else result
        elif context.attempt == 1:
            return result
        return started_result(result, context.worker, context.attempt)

    async def _astarted(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        if _has_past(context):
            return await sync_to_async(self._started)(context, data)
        return self._started(context, data)

    def _first(self, context: Context, data: dict[str, Any]) -> JobTaskResult:
        """The result of a first attempt."""
        args, kwargs = self.parameters.call(data)
        task = restored(self.task, data, queue=context.queue, priority=context.priority)
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
        """The result of a task that is over; None if it is not."""
        now = here.get()
        here.set(None)
        if outcome.verb not in _FINAL:
            return None
        if now is not None and now.result.id == str(context.id):
            result = now.result
        else:  # it did not begin, or hangs and is given up by another thread
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
        """Raise what made it fail, if anything did."""
        if outcome.verb is Verb.SUCCEED or error is None:
            return
        if self.secretive and outcome.failure is not None:
            failure = outcome.failure
            raise Concealed(f"{failure.error_class}: {failure.message}")
        trace = error.__traceback__
        try:
            raise error
        finally:
            error.__traceback__ = trace


def _kept(value: Any) -> Any:
    """What a task returned, as JSON has it."""
    try:
        return normalize_json(value)
    except (TypeError, ValueError) as error:
        why = result_problem(value, "it") or ""
        raise NotSerializable(
            f"The return value of the task is not JSON serializable: {why} ({error})"
        ) from None


def _sender(result: JobTaskResult) -> object:
    """The class of the backend that it was enqueued with."""
    return type(task_backends[result.backend])


def _has_past(context: Context) -> bool:
    """Whether other attempts came before; a job that nobody claimed is in no table."""
    return bool(context.fence and (context.attempt > 1 or context.crashes))
