"""Tasks as job types: declared when they are made, found by the name of their type."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured, SuspiciousOperation

from django_jobqueue.backends.backoff import as_backoff
from django_jobqueue.backends.compat import InvalidTask, Task
from django_jobqueue.backends.job_task import said
from django_jobqueue.backends.parameters import STAR, TaskParameters
from django_jobqueue.backends.results import NotSerializable
from django_jobqueue.backends.task_runner import Runner
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import Policy, name_problem
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.enqueueing.handler_functions import handler_problem

KIND: Final = "task"  # of a declaration
_OF_RETRIES: Final = ("max_attempts", "backoff", "retry_for")


def declaration_of(task: Task, defaults: Mapping[str, Any]) -> Declaration:
    """The job type of a task. Raises InvalidTask."""
    name = task.module_path
    if problem := handler_problem(task.func):
        raise InvalidTask(f"{name}: {problem}")
    if problem := name_problem(name):
        raise InvalidTask(
            f"{name}: its path is the name of a job type, which {problem}"
        )
    parameters = TaskParameters.of(task.func, takes_context=task.takes_context)
    policy = policy_for(task, defaults, parameters)
    runner = Runner(task, parameters, secretive=bool(policy.sensitive))
    made = Declaration(
        name=name,
        function=runner.function(),
        policy=policy,
        parameters=parameters,
        kind=KIND,
        observer=runner,
    )
    if policy.atomic and made.is_async:
        raise InvalidTask(
            f"{name}: atomic=True needs a sync task; Django has no async transactions."
        )
    return made


def policy_for(
    task: Task, defaults: Mapping[str, Any], parameters: TaskParameters
) -> Policy:
    """The policy of a task: its own words, and the ``defaults`` of its backend.

    Other backends run a task once, and its author may count on it, so it is retried
    only where something is said of retries.
    """
    own = said(task)
    options = {**_that_fit(own, defaults), **own}
    if not any(name in options for name in _OF_RETRIES):
        options["max_attempts"] = 1
    if "backoff" in options:
        options["backoff"] = as_backoff(options["backoff"])
    if isinstance(follower := options.get("on_complete"), Task):
        options["on_complete"] = follower.module_path
    if options.get("unique") is True and not parameters.unnamed:
        options["unique"] = tuple(sorted(parameters.names)) or True
    try:
        policy = policy_of(
            task.module_path,
            {**options, "queue": task.queue_name, "priority": task.priority},
        )
    except ImproperlyConfigured as error:
        raise InvalidTask(str(error).replace("@job", "@task", 1)) from error
    sensitive = policy.sensitive
    if sensitive and parameters.unnamed:
        sensitive |= {STAR}
    return replace(
        policy,
        takes_context=True,
        sensitive=sensitive,
        permanent=(*policy.permanent, NotSerializable),
    )


def _that_fit(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults, without those of retries for a task that is never started twice."""
    once = own.get("delivery") == Delivery.AT_MOST_ONCE
    return {k: v for k, v in defaults.items() if not (once and k in _OF_RETRIES)}


def declare(task: Task, defaults: Mapping[str, Any]) -> None:
    """Make the task a job type, with the policy of the task that its module has in the
    end: ``send = send.using(max_attempts=3)`` there counts. Raises InvalidTask."""
    name = task.module_path
    held = None if registry.is_promised(name) else runner_of(registry.get(name))
    if held is None or said(task):
        declaration_of(task, defaults)  # or say what is wrong with it
    is_same = held is not None and held.task.func is task.func
    if held is None or not is_same or held.task is not _of_module(held.task):
        registry.promise(name, partial(_make, task, defaults))


def declared(task: Task, defaults: Mapping[str, Any]) -> Declaration:
    """The job type of a task. Raises InvalidTask."""
    known = registry.get(task.module_path)
    if runner_of(known) is None:  # its module is being imported
        return declaration_of(task, defaults)
    assert known is not None
    return known


def runner_of(declaration: Declaration | None) -> Runner | None:
    """What runs the jobs of a task; None if the job type is of another kind."""
    observer = None if declaration is None else declaration.observer
    return observer if isinstance(observer, Runner) else None


def runner_at(name: str) -> Runner:
    """The task of this job type. Raises SuspiciousOperation if no module that was
    imported has it: none is imported because a row names it."""
    runner = runner_of(registry.get(name))
    if runner is None:
        raise SuspiciousOperation(
            f"The job type {name!r} is no task that is known here. Tasks are found in "
            "the modules tasks of installed apps, and in those of the setting MODULES."
        )
    return runner


def _make(task: Task, defaults: Mapping[str, Any]) -> Declaration | None:
    """The declaration of the task that stands in the module, once it is imported."""
    module = sys.modules.get(task.func.__module__)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return declaration_of(_of_module(task), defaults)


def _of_module(task: Task) -> Task:
    """The task of the same function that stands in its module; else this one."""
    module = sys.modules.get(task.func.__module__)
    found = getattr(module, task.func.__name__, None)
    return found if isinstance(found, Task) and found.func is task.func else task
