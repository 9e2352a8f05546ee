"""``@task`` makes a task of a function: Django's, with the options of ``@job``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Unpack, overload

from django_jobqueue.backends.compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    InvalidTask,
    Task,
    TaskResult,
    task_backends,
)
from django_jobqueue.domain.arguments import several_calls
from django_jobqueue.domain.followers import Follower
from django_jobqueue.domain.job_options import OF_JOB, OF_TYPE
from django_jobqueue.domain.policy import UNSET, Policy, Unset
from django_jobqueue.domain.schedule_rules import ScheduleRule
from django_jobqueue.enqueueing.options import (
    OneJobFields,
    OneJobOptions,
    Options,
    TypeOptions,
)
from django_jobqueue.enqueueing.scheduling import ScheduledCall, ScheduleOptions
from django_jobqueue.enqueueing.stored_options import as_follower
from django_jobqueue.text.foreign_words import HANDLER, no_attribute, option_hint

# Our words in hints, and the words of Django for the same.
_AS_DJANGO: Final = (("@job(", "@task("), (" queue=", " queue_name="))
NOT_POLICY: Final = ("queue", "priority", "takes_context")  # Django's Task has these
POLICY: Final = tuple(
    field.name for field in fields(Policy) if field.name not in NOT_POLICY
)
NOT_OF_CALLS: Final = ("run_after", "using")  # Django has the first, backends the other
# The options of one job alone, and those that its type has, too.
PER_JOB: Final = tuple(
    name for name in OF_JOB if name not in OF_TYPE and name not in NOT_OF_CALLS
)
BOTH: Final = tuple(
    name for name in OF_JOB if name in OF_TYPE and name not in NOT_POLICY
)
_OF_TYPE: Final = tuple(name for name in POLICY if name not in BOTH)
_NOT_CHANGED: Final = ("func", "takes_context")
_DJANGOS: Final = ("priority", "queue_name", "run_after", "backend")
OF_CALLS: Final = frozenset({*PER_JOB, *BOTH, *_DJANGOS})  # using() takes them


class PolicyOptions(TypeOptions, total=False):
    """The options of ``@job`` that ``@task`` takes."""

    backoff: Any  # as for @job, or f(exception, task_result)
    on_success: Any  # a task, a handler, the name of a job type, or a list of them
    on_failure: Any
    on_complete: Any


class JobOptions(OneJobOptions, PolicyOptions, total=False):
    """The options that ``using`` takes."""

    priority: int | None
    queue_name: str | None
    run_after: datetime | timedelta | None
    backend: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTask(OneJobFields, Task):
    """A task with options for its jobs. Unset options come from the OPTIONS of its
    backend, and then from the settings of the job queue."""

    max_attempts: int | None | Unset = UNSET
    backoff: Any = UNSET
    timeout: timedelta | float | None | Unset = UNSET
    delivery: str | Unset = UNSET
    concurrency: int | None | Unset = UNSET
    rate: Any = UNSET
    per_key: Any = UNSET
    atomic: bool | Unset = UNSET
    expires_in: timedelta | float | None | Unset = UNSET
    max_crashes: int | Unset = UNSET
    retry: Any = field(default=UNSET, hash=False)  # a dict
    sensitive: Any = UNSET
    indexed: Any = UNSET
    summary: str | None | Unset = UNSET
    unique: Any = UNSET
    unique_until: str | timedelta | float | Unset = UNSET
    on_duplicate: str | Unset = UNSET
    debounce: timedelta | float | Unset = UNSET
    debounce_max: timedelta | float | Unset = UNSET
    on_success: Any = UNSET
    on_failure: Any = UNSET
    on_complete: Any = UNSET
    capture: Any = UNSET
    middleware: Any = UNSET

    def __repr__(self) -> str:
        values = ((f.name, getattr(self, f.name), f.default) for f in fields(self))
        given = (
            f"{name}={value!r}" for name, value, default in values if value != default
        )
        return f"{type(self).__qualname__}({', '.join(given)})"

    if not TYPE_CHECKING:  # type checkers would accept every attribute

        def __getattr__(self, name: str) -> Any:
            """Raises AttributeError with a hint."""
            try:
                own = object.__getattribute__(self, "func").__name__
            except AttributeError:  # a copy that has no fields yet
                own = "task"
            no_attribute(self, name, OF_TASKS, own)

    def using(self, **options: Unpack[JobOptions]) -> JobTask:
        """The same task with other options for the jobs that it enqueues.

        It takes the options of Django, where ``run_after`` may also be a wait from the
        enqueue, and those of one job, such as ``max_attempts``, ``expires_at``,
        ``metadata`` and ``tags``. Where the task is declared it also takes the options
        of ``@task``: ``send = send.using(timeout=5)``. Raises TypeError for other
        options, and InvalidTask.
        """
        changes: dict[str, Any] = {
            name: value
            for name, value in options.items()
            if value is not None or name not in _DJANGOS
        }
        known = [f.name for f in fields(self) if f.name not in _NOT_CHANGED]
        for name in changes:
            if name not in known:
                hint = hint_of_task(name, known, self.name)
                raise TypeError(f"using() has no option {name!r}.{hint}")
        changed: JobTask = replace(self, **changes)
        return changed

    def as_follower(self) -> Follower:
        """This task with its options, as the follower of another job. Raises
        InvalidArguments and InvalidTask for options that followers cannot have."""
        declared = of_module(self)
        check_options(self, declared)
        options = job_options(self, declared)
        if self.queue_name != declared.queue_name:
            options["queue"] = self.queue_name
        if self.run_after is not None:
            options["run_after"] = self.run_after
        return as_follower(self.module_path, Options().but(options))

    def at(
        self, rule: ScheduleRule, **options: Unpack[ScheduleOptions]
    ) -> ScheduledCall[...]:
        """Enqueue the task at each moment of this rule, ``cron(…)`` or ``every(…)``,
        with the arguments that the result is called with::

            send_report.at(cron("30 2 * * *"), name="report-eu")(region="eu")

        Raises ImproperlyConfigured, InvalidTask.
        """
        backend: Any = self.get_backend()
        scheduled: ScheduledCall[...] = backend.at(self, rule, dict(options))
        return scheduled

    def enqueue_many(self, calls: Iterable[Mapping[str, Any]]) -> list[TaskResult]:
        """Enqueue one job for each dict of arguments; return their results, in order.

        All or none, in the caller's transaction. Raises the errors of ``enqueue``.
        """
        backend: Any = self.get_backend()
        given = [(self, (), call) for call in several_calls(calls)]
        many: list[TaskResult] = backend.enqueue_many(given)
        return many

    async def aenqueue_many(
        self, calls: Iterable[Mapping[str, Any]]
    ) -> list[TaskResult]:
        """``enqueue_many`` for async code."""
        backend: Any = self.get_backend()
        given = [(self, (), call) for call in several_calls(calls)]
        many: list[TaskResult] = await backend.aenqueue_many(given)
        return many


def of_module(task: Task) -> Task:
    """The task of the same function that its module holds; else this one."""
    module = sys.modules.get(task.func.__module__)
    held = getattr(module, task.func.__name__, None)
    return held if isinstance(held, Task) and held.func is task.func else task


def job_options(task: Task, declared: Task) -> dict[str, Any]:
    """The options of this task's jobs in which they differ from their type; the queue
    and ``run_after`` are not among them."""
    options: dict[str, Any] = {
        name: getattr(task, name)
        for name in PER_JOB
        if getattr(task, name, None) not in (None, ())
    }
    options |= {
        name: getattr(task, name)
        for name in BOTH
        if getattr(task, name, UNSET) is not UNSET
        and getattr(task, name) != getattr(declared, name, UNSET)
    }
    if task.priority != declared.priority:
        options["priority"] = task.priority
    return options


def check_options(task: Task, declared: Task) -> None:
    """Raises InvalidTask for an option that other jobs of the type do not share."""
    for name in _OF_TYPE:
        own = getattr(task, name, UNSET)
        if own is not UNSET and own != getattr(declared, name, UNSET):
            raise InvalidTask(
                f"{name} belongs to all jobs of {task.module_path}, not to one of "
                f"them. State it where the task is declared: {task.name} = "
                f"{task.name}.using({name}=…)."
            )


def _as_django(text: str) -> str:
    for ours, theirs in _AS_DJANGO:
        text = text.replace(ours, theirs)
    return text


OF_TASKS: Final = {word: _as_django(text) for word, text in HANDLER.items()}


def hint_of_task(name: str, known: Iterable[str], task: str = "task") -> str:
    """A hint for an unknown option of a task, as a sentence that follows another
    one."""
    return _as_django(option_hint(name, known, task))


def own_policy(task: Task) -> dict[str, Any]:
    """The policy options that the task itself states."""
    values = {name: getattr(task, name, UNSET) for name in POLICY}
    return {name: value for name, value in values.items() if value is not UNSET}


@overload
def task(function: Callable[..., Any], /) -> JobTask: ...
@overload
def task(
    *,
    priority: int = ...,
    queue_name: str = ...,
    backend: str = ...,
    takes_context: bool = ...,
    **options: Unpack[PolicyOptions],
) -> Callable[[Callable[..., Any]], JobTask]: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    priority: int = DEFAULT_TASK_PRIORITY,
    queue_name: str = DEFAULT_TASK_QUEUE_NAME,
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    takes_context: bool = False,
    **options: Any,
) -> Any:
    """Django's ``@task``, which takes the options of ``@job`` on Django 6.0, too.

    The options have no effect under a backend that is not the job queue's, such as
    Django's own for tests. Raises TypeError for an unknown option, and InvalidTask for
    a wrong value.
    """

    def declare(func: Callable[..., Any]) -> Any:
        task_class = task_backends[backend].task_class
        known = {field.name for field in fields(task_class)}
        for name in options.keys() - known - {*POLICY}:
            hint = hint_of_task(name, {*known, *POLICY}, func.__name__)
            raise TypeError(f"@task has no option {name!r}.{hint}")
        supported = {k: v for k, v in options.items() if k in known}
        return task_class(
            func=func,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,  # Django 6.0 requires it
            **supported,
        )

    return declare if function is None else declare(function)
