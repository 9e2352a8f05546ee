"""What TASKS says of a backend of ours: defaults of its tasks, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.backends.backoff import as_backoff
from django_jobqueue.backends.job_task import POLICY, hint_of_task
from django_jobqueue.domain.job_options import policy_of

APP: Final = "django_jobqueue"
BESIDE: Final = ("MAX_ATTEMPTS", "BACKOFF")  # as Django's proposal has them


def given(params: Mapping[str, Any]) -> dict[str, Any]:
    """The options of jobs that the settings of an alias give, wherever they do."""
    options = params.get("OPTIONS", {})
    beside = {name.lower(): params[name] for name in BESIDE if name in params}
    return {**beside, **(options if isinstance(options, dict) else {})}


def usable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are right, so that a project with a mistake starts and its checks can
    tell; none if they contradict each other."""
    right = {
        name: value for name, value in options.items() if not _problem({name: value})
    }
    return {} if _problem(right) else right


def check(
    alias: str, params: Mapping[str, Any], extra: frozenset[str]
) -> Iterator[CheckMessage]:
    """E020–E023: the app, and the OPTIONS. ``extra`` are names of a subclass's own."""
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
    mine = {k: v for k, v in given(params).items() if k not in extra}
    found = [message for name in mine for message in _one(alias, name, mine[name])]
    yield from found
    if not found and (problem := _problem(mine)):
        yield _wrong(alias, "OPTIONS", problem)


def _one(alias: str, name: object, value: object) -> Iterator[CheckMessage]:
    if name not in POLICY:
        hint = hint_of_task(str(name), POLICY).strip()
        yield Error(
            f"TASKS[{alias!r}]['OPTIONS'][{name!r}] is no option of jobs.",
            hint=hint or f"The options are {', '.join(POLICY)}.",
            id="jobqueue.E022",
        )
    elif problem := _problem({name: value}):
        yield _wrong(alias, f"OPTIONS'][{name!r}", problem)


def _wrong(alias: str, where: str, problem: str) -> CheckMessage:
    return Error(
        f"TASKS[{alias!r}]['{where}]: {problem}".replace("'OPTIONS]", "'OPTIONS']"),
        hint="They are those of @job: see the reference of job options.",
        id="jobqueue.E023",
    )


def _problem(options: Mapping[Any, Any]) -> str | None:
    """What is wrong with these options, if anything is."""
    ready = {**options}
    if "backoff" in ready:
        ready["backoff"] = as_backoff(ready["backoff"])
    try:
        policy_of("TASKS", ready)
    except ImproperlyConfigured as error:
        return str(error).removeprefix("@job on TASKS: ")
    return None
