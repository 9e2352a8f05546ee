"""Backoffs of tasks: ``f(exception, task_result)``, as Django's proposal has it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django_jobqueue.backends.compat import TaskResult
from django_jobqueue.backends.task_runner import here
from django_jobqueue.exceptions import Fail
from django_jobqueue.retries import exponential


@dataclass(frozen=True, slots=True)
class ByError:
    """A backoff that is asked with the error, as one that job types have."""

    func: Callable[[BaseException, TaskResult], float | timedelta | None]

    def __call__(self, attempt: int) -> timedelta:
        """The wait after the attempt that has just ended here. Raises Fail if there
        should be no further one."""
        now = here.get()
        if now is None or now.error is None:  # it hangs: another thread gave it up
            return exponential(attempt)
        wait = self.func(now.error, now.result)
        if wait is None:
            raise Fail("the backoff returned None")
        return wait if isinstance(wait, timedelta) else timedelta(seconds=wait)


def as_backoff(value: Any) -> Any:
    """A backoff as job types have it: what takes two arguments is asked with the
    error."""
    if not callable(value):
        return value
    try:
        inspect.signature(value).bind(1)
    except TypeError:
        return ByError(value)
    return value
