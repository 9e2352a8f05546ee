"""Results of tasks: a job and its attempts in the words of Django's framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django_jobqueue import waiting
from django_jobqueue.backends.compat import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
)
from django_jobqueue.backends.job_task import JobTask
from django_jobqueue.backends.parameters import STAR, TaskParameters
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.fingerprints import class_name
from django_jobqueue.domain.states import ArchivedStatus, AttemptEnd, QueuedStatus
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.exceptions import (
    InvalidResult,
    JobCancelled,
    JobExpired,
    JobLost,
    NotDone,
)
from django_jobqueue.retries import from_stored_form
from django_jobqueue.store.reading.record import End, Record
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones

_STATUS: Final[dict[str, TaskResultStatus]] = {
    QueuedStatus.QUEUED: TaskResultStatus.READY,
    QueuedStatus.RUNNING: TaskResultStatus.RUNNING,
    ArchivedStatus.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    ArchivedStatus.FAILED: TaskResultStatus.FAILED,
    ArchivedStatus.EXPIRED: TaskResultStatus.FAILED,
    ArchivedStatus.CANCELLED: TaskResultStatus.FAILED,
}
_ERRORS: Final = (AttemptEnd.FAILED, AttemptEnd.TIMED_OUT, AttemptEnd.CRASHED)
_OURS: Final = "jobqueue."  # classes of failures without an exception
_ENDED: Final[dict[str, type[NotDone]]] = {
    ArchivedStatus.CANCELLED: JobCancelled,
    ArchivedStatus.EXPIRED: JobExpired,
}


class NotSerializable(InvalidResult):
    """The return value of a task cannot be stored as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTaskResult(TaskResult):  # type: ignore[misc]  # it is frozen
    """A result with ``wait()`` and ``await_()``."""

    # What the enqueue that returned it did; both are false for a job that was there.
    is_new: bool = field(default=False, compare=False, repr=False)
    is_replaced: bool = field(default=False, compare=False, repr=False)

    def wait(self, timeout: float | None = None) -> JobTaskResult:
        """Wait until the task has finished, refresh this result, and return it.

        ``timeout`` is in seconds; None is unlimited. Raises TimeoutError, and
        RuntimeError in a transaction: workers do not see its jobs before it commits.
        """
        waiting.wait(self.id, timeout)
        self.refresh()
        return self

    async def await_(self, timeout: float | None = None) -> JobTaskResult:
        """``wait`` for async code; many can wait in one event loop."""
        await waiting.await_(self.id, timeout)
        await self.arefresh()
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTaskContext(TaskContext):  # type: ignore[misc]  # it is frozen
    """The first argument of a task with ``takes_context=True``."""

    job: Context = field(compare=False)  # the context of a handler of @job

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata of the job: ``using(metadata=…)``. It may be changed."""
        return self.job.metadata

    def save_metadata(self) -> None:
        """Write ``metadata`` now, for later attempts and for readers."""
        self.job.save_metadata()

    async def asave_metadata(self) -> None:
        """``save_metadata`` for async tasks."""
        await self.job.asave_metadata()


def new_result(
    task: Task,
    *,
    id: object,
    enqueued_at: datetime,
    args: Any,
    kwargs: Any,
    worker: str | None = None,
    is_new: bool = False,
    is_replaced: bool = False,
) -> JobTaskResult:
    """The result of a task that was just enqueued, or, with ``worker``, of one whose
    first attempt that worker starts now."""
    started_at = None if worker is None else timezones.now()
    ready, running = TaskResultStatus.READY, TaskResultStatus.RUNNING
    return JobTaskResult(
        task=task,
        id=str(id),
        status=ready if worker is None else running,
        enqueued_at=enqueued_at,
        started_at=started_at,
        finished_at=None,
        last_attempted_at=started_at,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=[],
        worker_ids=[] if worker is None else [worker],
        is_new=is_new,
        is_replaced=is_replaced,
    )


def _result(record: Record, task: Task, args: Any, kwargs: Any) -> JobTaskResult:
    starts = [record.first_start, record.last_start, record.job.started_at]
    started = [moment for moment in starts if moment is not None]
    result = JobTaskResult(
        task=task,
        id=str(record.job.id),
        status=_STATUS[record.job.status],
        enqueued_at=record.job.created_at,
        started_at=min(started, default=None),
        finished_at=record.job.finished_at,
        last_attempted_at=max(started, default=None),
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=list(_errors(record)),
        worker_ids=_workers(record),
    )
    object.__setattr__(result, "_return_value", record.job.result)
    return result


def started_result(result: JobTaskResult, worker: str, attempt: int) -> JobTaskResult:
    """The same result as a later attempt is about to call the function."""
    now = timezones.now()
    _set(result, status=TaskResultStatus.RUNNING, last_attempted_at=now)
    if result.started_at is None:
        _set(result, started_at=now)
    before = [*result.worker_ids[: attempt - 1]]
    missing = [""] * (attempt - 1 - len(before))
    _set(result, worker_ids=[*before, *missing, worker])
    return result


def finished_result(
    result: JobTaskResult,
    error: BaseException | None,
    value: Any = None,
    trace: str = "",
) -> JobTaskResult:
    """The same result after its last attempt."""
    status = TaskResultStatus.SUCCESSFUL if error is None else TaskResultStatus.FAILED
    _set(result, status=status, finished_at=timezones.now(), _return_value=value)
    if error is not None:
        path = path_of(class_name(error))
        task_error = TaskError(exception_class_path=path, traceback=trace)
        _set(result, errors=[*result.errors, task_error])
    return result


def _set(result: TaskResult, **values: Any) -> None:
    """Write fields of a result, which is frozen."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def path_of(error_class: str) -> str:
    """The path from which the class of a stored failure can be imported."""
    if error_class == _path(NotSerializable):
        return "builtins.TypeError"
    if not error_class or error_class.startswith(_OURS):
        return _path(JobLost)
    return error_class if "." in error_class else f"builtins.{error_class}"


def _errors(record: Record) -> Iterable[TaskError]:
    for end in record.ends:
        if end.end in _ERRORS:
            text = end.traceback or _plain(path_of(end.error_class), _error_text(end))
            yield TaskError(
                exception_class_path=path_of(end.error_class), traceback=text
            )
    last = record.ends[-1].end if record.ends else None
    if record.job.status in _ENDED:
        path = _path(_ENDED[record.job.status])
    elif record.job.status == ArchivedStatus.FAILED and last not in _ERRORS:
        path = path_of(record.job.error_class)
    else:
        return
    text = _plain(path, record.job.error_message or record.job.status)
    yield TaskError(exception_class_path=path, traceback=text)


def _workers(record: Record) -> list[str]:
    """The worker of each attempt; '' for an attempt whose failure is pruned."""
    by_number = {end.number: end.worker for end in record.ends}
    if record.job.worker:
        by_number[record.job.attempts] = record.job.worker
    return [by_number.get(number, "") for number in range(1, record.job.attempts + 1)]


def _error_text(end: End) -> str:
    return end.error_message or end.reason


def _plain(path: str, text: str) -> str:
    """The last line of a traceback, for a failure that has none."""
    return f"{path.removeprefix('builtins.')}: {text}\n"


def _path(cls: type[BaseException]) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def task_of_job(
    task: Task,
    data: Mapping[str, Any],
    *,
    queue: str,
    priority: int,
    own: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """The declared task, with the options in which the job differs: ``own`` are those
    of ``JobTask``.

    It is not validated: the settings' queues and backends may have changed since.
    """
    star = data.get(STAR, {})
    changes = {"queue_name": queue, "priority": priority}
    changes |= {name: star[name] for name in ("backend", "run_after") if name in star}
    if "run_after" in changes:
        changes["run_after"] = datetime.fromisoformat(str(changes["run_after"]))
    if isinstance(task, JobTask):
        changes |= own
    return replace_unvalidated(task, **changes)


def result_of_record(
    record: Record, task: Task, parameters: TaskParameters
) -> JobTaskResult:
    """The result of the declared task that this job's record holds."""
    args, kwargs = parameters.call(record.job.data)
    of_job = task_of_job(
        task,
        record.job.data,
        queue=record.job.queue,
        priority=record.job.priority,
        own=_own_options(record.job),
    )
    return _result(record, of_job, args, kwargs)


def _own_options(job: Job) -> dict[str, Any]:
    """The options that this job has for itself."""
    own: dict[str, Any] = {"max_attempts": job.max_attempts, "timeout": job.timeout}
    with suppress(ValueError):  # there is none, or plain SQL wrote something else
        own["backoff"] = from_stored_form(job.backoff)
    return {name: value for name, value in own.items() if value is not None}


def replace_unvalidated(task: Task, **changes: Any) -> Task:
    """The task with these changes, as ``dataclasses.replace``, but not validated."""
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    made: Task = object.__new__(type(task))
    for known in fields(task):
        value = changes.get(known.name, getattr(task, known.name))
        object.__setattr__(made, known.name, value)
    return made


def immediate_record(id: UUID) -> Record | None:
    """The record of a job that ran here at its enqueue; None if there is none."""
    job = memory.find(id)
    if job is None:
        return None
    ends = []
    if job.status == ArchivedStatus.FAILED:
        end = End(
            number=job.attempts,
            end=AttemptEnd.FAILED,
            worker=job.worker,
            error_class=job.error_class,
            error_message=job.error_message,
            reason="",
            traceback="",
        )
        ends.append(end)
    return Record(
        job=job,
        first_start=job.started_at,
        last_start=job.started_at,
        ends=tuple(ends),
    )
