"""Options of the jobs of a task, and tasks as followers of other jobs."""

from __future__ import annotations

import sys
from typing import Any, Final

from django_jobqueue.backends.compat import InvalidTask, Task
from django_jobqueue.backends.job_task import BOTH, PER_JOB, POLICY
from django_jobqueue.domain.followers import FOLLOWER_OPTIONS, Follower
from django_jobqueue.domain.policy import UNSET
from django_jobqueue.enqueueing.follower_rows import as_follower
from django_jobqueue.enqueueing.options import Options

_OF_TYPE: Final = tuple(name for name in POLICY if name not in BOTH)


def of_module(task: Task) -> Task:
    """The task of the same function that its module holds; else this one."""
    module = sys.modules.get(task.func.__module__)
    held = getattr(module, task.func.__name__, None)
    return held if isinstance(held, Task) and held.func is task.func else task


def job_options(task: Task, declared: Task) -> dict[str, Any]:
    """The options of this task's jobs in which they differ from their type. Raises
    InvalidArguments for followers with options that they cannot have."""
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
    return with_followers(options)


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


def with_followers(options: dict[str, Any]) -> dict[str, Any]:
    """These options; their tasks are followers as ``@job`` takes them. Raises
    InvalidArguments and InvalidTask."""
    return {
        name: _as_followers(value) if name in FOLLOWER_OPTIONS else value
        for name, value in options.items()
    }


def _as_followers(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_followers(one) for one in value]
    return _as_follower(value) if isinstance(value, Task) else value


def _as_follower(task: Task) -> Follower:
    declared = of_module(task)
    check_options(task, declared)
    options = job_options(task, declared)
    if task.queue_name != declared.queue_name:
        options["queue"] = task.queue_name
    if task.run_after is not None:
        options["run_after"] = task.run_after
    return as_follower(task.module_path, Options().but(options))
