"""Tasks as job types: their policy from TASKS and ``@task``, and their declaration."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured, SuspiciousOperation

from django_jobqueue.backends.compat import InvalidTask, Task
from django_jobqueue.backends.job_task import (
    POLICY,
    hint_of_task,
    of_module,
    own_policy,
)
from django_jobqueue.backends.parameters import STAR, TaskParameters
from django_jobqueue.backends.task_runner import Runner, as_backoff
from django_jobqueue.domain.job_options import policy_of
from django_jobqueue.domain.policy import Policy, name_problem
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.enqueueing.handler_functions import handler_problem

APP: Final = "django_jobqueue"
BESIDE: Final = ("MAX_ATTEMPTS", "BACKOFF")  # where Django's proposal has them
LABEL: Final = "task"  # of a declaration
_OF_RETRIES: Final = ("max_attempts", "backoff", "retry")


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
    runner = Runner(task, parameters, conceals_errors=bool(policy.sensitive))
    made = Declaration(
        name=name,
        function=runner.function(),
        policy=policy,
        parameters=parameters,
        label=LABEL,
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
    """The policy of a task: its own options, and the ``defaults`` of its backend.

    Other backends run a task once, and its author may rely on that. So it is retried
    only if the task or the defaults mention retries.
    """
    own = own_policy(task)
    options = {**_applicable(own, defaults), **own}
    if not any(name in options for name in _OF_RETRIES):
        options["max_attempts"] = 1
    if "backoff" in options:
        options["backoff"] = as_backoff(options["backoff"])
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
    return replace(policy, takes_context=True, sensitive=sensitive)


def _applicable(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults, without those of retries for a task that is never started twice."""
    once = own.get("delivery") == Delivery.AT_MOST_ONCE
    return {k: v for k, v in defaults.items() if not (once and k in _OF_RETRIES)}


def declare(task: Task, defaults: Mapping[str, Any]) -> None:
    """Make the task a job type, with the policy of the task that its module holds when
    its import ends: ``send = send.using(max_attempts=3)`` there counts. Raises
    InvalidTask."""
    name = task.module_path
    held = None if registry.is_lazy(name) else runner_of(registry.get(name))
    if held is None or own_policy(task):
        declaration_of(task, defaults)  # raises for wrong options
    is_same = held is not None and held.task.func is task.func
    if held is None or not is_same or held.task is not of_module(held.task):
        registry.add_lazily(name, partial(_declare_at_end_of_import, task, defaults))


def current_declaration(task: Task, defaults: Mapping[str, Any]) -> Declaration:
    """The job type of a task. Raises InvalidTask."""
    known = registry.get(task.module_path)
    if runner_of(known) is None:  # its module is being imported
        return declaration_of(task, defaults)
    assert known is not None
    return known


def runner_of(declaration: Declaration | None) -> Runner | None:
    """The runner of a task's jobs; None if the job type is no task."""
    observer = None if declaration is None else declaration.observer
    return observer if isinstance(observer, Runner) else None


def runner_of_job_type(name: str) -> Runner:
    """The runner of this job type. Raises SuspiciousOperation if no imported module
    declares it: a name in a row never leads to an import."""
    runner = runner_of(registry.get(name))
    if runner is None:
        raise SuspiciousOperation(
            f"The job type {name!r} is no task that is known here. Tasks are found in "
            "the modules named tasks of installed apps, and in those of MODULES."
        )
    return runner


def _declare_at_end_of_import(
    task: Task, defaults: Mapping[str, Any]
) -> Declaration | None:
    """The declaration of the task that its module holds; None until the module's import
    ends."""
    module = sys.modules.get(task.func.__module__)
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return declaration_of(of_module(task), defaults)


def options_of_alias(params: Mapping[str, Any]) -> dict[str, Any]:
    """The job options in the settings of an alias: in OPTIONS, or beside it."""
    options = params.get("OPTIONS", {})
    beside = {name.lower(): params[name] for name in BESIDE if name in params}
    return {**beside, **(options if isinstance(options, dict) else {})}


def valid_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The valid ones of these options, so that a project with a mistake starts and its
    checks report it; none if they contradict each other."""
    right = {
        name: value for name, value in options.items() if not _problem({name: value})
    }
    return {} if _problem(right) else right


def check_alias(
    alias: str, params: Mapping[str, Any], extra: frozenset[str]
) -> Iterator[CheckMessage]:
    """E020–E023: the app, and the OPTIONS. ``extra`` names a subclass's own options."""
    if not apps.is_installed(APP):
        yield Error(
            f"TASKS[{alias!r}] uses the job queue, which is not installed.",
            hint=f"Add {APP!r} to INSTALLED_APPS, and run manage.py migrate.",
            id="jobqueue.E020",
        )
        return
    options = params.get("OPTIONS", {})
    if not isinstance(options, dict):
        yield Error(
            f"TASKS[{alias!r}]['OPTIONS'] must be a dict, not {options!r}.",
            hint='For example {"max_attempts": 5, "backoff": "exponential"}.',
            id="jobqueue.E021",
        )
        return
    ours = {k: v for k, v in options_of_alias(params).items() if k not in extra}
    messages = [one for name in ours for one in _check_option(alias, name, ours[name])]
    yield from messages
    if not messages and (problem := _problem(ours)):
        yield _wrong(f"TASKS[{alias!r}]['OPTIONS']", problem)


def _check_option(alias: str, name: object, value: object) -> Iterator[CheckMessage]:
    place = f"TASKS[{alias!r}]['OPTIONS'][{name!r}]"
    if name not in POLICY:
        hint = hint_of_task(str(name), POLICY).strip()
        yield Error(
            f"{place} is no option of jobs.",
            hint=hint or f"The options are {', '.join(POLICY)}.",
            id="jobqueue.E022",
        )
    elif problem := _problem({name: value}):
        yield _wrong(place, problem)


def _wrong(place: str, problem: str) -> CheckMessage:
    return Error(
        f"{place}: {problem}",
        hint="They are the options of @job: see the reference of job options.",
        id="jobqueue.E023",
    )


def _problem(options: Mapping[Any, Any]) -> str | None:
    """Why ``@job`` would refuse these options; None if it would not."""
    ready = {**options}
    if "backoff" in ready:
        ready["backoff"] = as_backoff(ready["backoff"])
    try:
        policy_of("TASKS", ready)
    except ImproperlyConfigured as error:
        return str(error).removeprefix("@job on TASKS: ")
    return None
