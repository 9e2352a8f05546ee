"""``@task`` with options, on every version of Django."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Unpack, overload

from django_jobqueue.backends.compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    task_backends,
)
from django_jobqueue.backends.job_task import (
    POLICY,
    JobTask,
    PolicyOptions,
    hint_of_task,
)


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

    Under a backend that is not of the job queue, such as Django's own for tests, the
    options say nothing. Raises TypeError for an option that there is not, and
    InvalidTask for a wrong one.
    """

    def declare(func: Callable[..., Any]) -> Any:
        task_class = task_backends[backend].task_class
        known = {field.name for field in fields(task_class)}
        for name in options.keys() - known - {*POLICY}:
            hint = hint_of_task(name, {*known, *POLICY}, func.__name__)
            raise TypeError(f"@task has no option {name!r}.{hint}")
        said = {k: v for k, v in options.items() if k in known}
        return task_class(
            func=func,
            priority=priority,
            queue_name=queue_name,
            backend=backend,
            takes_context=takes_context,
            run_after=None,  # Django 6.0 asks for it
            **said,
        )

    return declare if function is None else declare(function)
