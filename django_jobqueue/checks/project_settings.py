"""Checks of the settings: the ``JOBQUEUE`` dict, its name, and the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

from django_jobqueue import rooms
from django_jobqueue.checks.lazy_loading import register
from django_jobqueue.conf import Conf, conf
from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.exceptions import MetricsExtraMissing
from django_jobqueue.metrics.exposition import require_extra

TAG = "jobqueue"
REMOTE = "django_jobqueue.contrib.remote"
SCHEDULES = "django_jobqueue.contrib.schedules"
# Settings that nothing reads without an app.
APPS = {
    "ENDPOINTS": REMOTE,
    **dict.fromkeys(("ALERTS", "HEARTBEAT_URL"), "django_jobqueue.contrib.alerts"),
    **dict.fromkeys(
        (
            *("HTTP_AUTH", "HTTP_LONG_POLLS", "HTTP_MAX_BODY", "HTTP_REQUIRE_TLS"),
            "HTTP_THROTTLE",
        ),
        "django_jobqueue.contrib.http",
    ),
}


@register(TAG)
def check_settings(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """E001–E004, E014, E015, W016: JOBQUEUE, the environment, what features need."""
    given = getattr(settings, "JOBQUEUE", {})
    if not isinstance(given, dict):
        return [
            Error(
                f"JOBQUEUE must be a dict, not {given!r}.",
                hint='For example JOBQUEUE = {"LEASE": 15}.',
                id="jobqueue.E001",
            )
        ]
    messages = [
        message for name, value in given.items() for message in _one(name, value)
    ]
    messages += _environment()
    if messages:
        return messages
    return [*_without_app(), *_needed(), *_queue_names(), *_combinations()]


def _one(name: object, value: object) -> Iterator[CheckMessage]:
    setting = Conf.settings.get(str(name))
    if setting is None:
        near = get_close_matches(str(name).upper(), Conf.settings, n=1)
        known = f"The settings are {', '.join(sorted(Conf.settings))}."
        yield Error(
            f"JOBQUEUE[{name!r}] is not a setting of the job queue.",
            hint=f"Did you mean {near[0]!r}?" if near else known,
            id="jobqueue.E002",
        )
    elif problem := setting.problem(value):
        yield Error(
            f"JOBQUEUE[{name!r}] {problem}.", hint=setting.help, id="jobqueue.E003"
        )


def _environment() -> Iterator[CheckMessage]:
    """E003: variables whose values cannot be used, which then do not count. W016: names
    that resemble those of settings; any other may be the project's own."""
    for setting, value in conf.of_environment():
        if problem := setting.problem(value):
            yield Error(
                f"The environment variable {setting.variable} {problem}.",
                hint=setting.help,
                id="jobqueue.E003",
            )
    known = {setting.variable for setting in Conf.settings.values()}
    for name in sorted({n for n in os.environ if n.startswith("JOBQUEUE_")} - known):
        if near := get_close_matches(name, known, n=1, cutoff=0.85):
            yield Warning(
                f"The environment variable {name} is not a setting of the job queue.",
                hint=f"Did you mean {near[0]}?",
                id="jobqueue.W016",
            )


def _without_app() -> Iterator[CheckMessage]:
    """E014: settings, schedules and job types of features that are not installed."""
    unused = {
        f"JOBQUEUE[{name!r}] does nothing": app
        for name, app in APPS.items()
        if getattr(conf, name.lower()) != Conf.settings[name].default
    }
    for name in schedules.names[:1]:
        unused[f"The schedule {name!r} never fires"] = SCHEDULES
    remote = [one.name for one in registry if one.is_remote or one.endpoint]
    for name in remote[:1]:
        unused[f"Nobody does the jobs of remote_job({name!r})"] = REMOTE
    for what, app in unused.items():
        if not apps.is_installed(app):
            yield Error(
                f"{what}: its app is not installed.",
                hint=f"Add {app!r} to INSTALLED_APPS.",
                id="jobqueue.E014",
            )


def _needed() -> Iterator[CheckMessage]:
    """E015: features that others need."""
    for room in rooms.rooms():
        for app in room.needs:
            if not apps.is_installed(app):
                yield Error(
                    f"{room.name} needs {app}, which is not installed.",
                    hint=f"Add {app!r} to INSTALLED_APPS.",
                    id="jobqueue.E015",
                )


def _queue_names() -> Iterator[CheckMessage]:
    for name in conf.queues or ():
        if problem := queue_problem(name):
            yield Error(
                f"JOBQUEUE['QUEUES'] has an invalid queue name: it {problem}",
                hint=Conf.queues.help,
                id="jobqueue.E003",
            )


def _combinations() -> Iterator[CheckMessage]:
    """E004, W001, W017–W020: settings that contradict others, or what is installed."""
    if conf.threads == 0 and conf.async_slots == 0:
        yield Error(
            "JOBQUEUE['THREADS'] and JOBQUEUE['ASYNC_SLOTS'] are both 0, so a worker "
            "could run nothing.",
            hint="Leave one of them above 0.",
            id="jobqueue.E004",
        )
    if conf.statement_timeout >= conf.lease:
        yield Warning(
            f"JOBQUEUE['STATEMENT_TIMEOUT'] ({conf.statement_timeout:g} s) is not "
            f"below JOBQUEUE['LEASE'] ({conf.lease:g} s): one slow statement could "
            "cost a worker its claims.",
            hint="Make LEASE longer, or STATEMENT_TIMEOUT shorter.",
            id="jobqueue.W001",
        )
    if any(network.prefixlen == 0 for network in conf.metrics_allow):
        yield Warning(
            "JOBQUEUE['METRICS_ALLOW'] lets everyone read metrics: the names of your "
            "queues and job types, and their load.",
            hint="Name the networks of your monitoring, or use METRICS_TOKENS.",
            id="jobqueue.W018",
        )
    yield from _extra()
    yield from _tenants()


def _tenants() -> Iterator[CheckMessage]:
    """W020: tables of our own in the schema of each tenant of django-tenants."""
    types = getattr(settings, "TENANT_TYPES", {})
    shared = getattr(settings, "PUBLIC_SCHEMA_NAME", "public")
    apps = {*getattr(settings, "TENANT_APPS", ())}.union(
        *(each.get("APPS", ()) for name, each in types.items() if name != shared)
    )
    if apps & {"django_jobqueue", "django_jobqueue.apps.JobQueueConfig"}:
        yield Warning(
            "django_jobqueue is among the apps of tenants: each tenant's schema has "
            "its own tables, and no worker runs the jobs in them.",
            hint="List it only in SHARED_APPS.",
            id="jobqueue.W020",
        )


def _extra() -> Iterator[CheckMessage]:
    """W017, W019: what needs prometheus_client."""
    try:
        require_extra()
    except MetricsExtraMissing as error:
        if conf.metrics_port is not None:
            yield Warning(
                "JOBQUEUE['METRICS_PORT'] is set, and prometheus_client is not "
                "installed: /metrics is answered with 501, probes are answered.",
                hint=str(error),
                id="jobqueue.W017",
            )
        if conf.metrics_enqueued:
            yield Warning(
                "JOBQUEUE['METRICS_ENQUEUED'] is set, and prometheus_client is not "
                "installed: nothing is counted.",
                hint=str(error),
                id="jobqueue.W019",
            )


@register(TAG)
def check_name(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> Iterable[CheckMessage]:
    """W013: a dict of our settings under another name, which nobody reads."""
    return [
        Warning(
            f"The setting {name} looks like the job queue's, which reads only "
            "JOBQUEUE.",
            hint=f"Rename {name} to JOBQUEUE.",
            id="jobqueue.W013",
        )
        for name in dir(settings)
        if _is_like_ours(name) and _is_like_jobqueue(getattr(settings, name))
    ]


def _is_like_ours(name: str) -> bool:
    if name == "JOBQUEUE" or not name.isupper():
        return False
    letters = name.replace("_", "").removeprefix("DJANGO")
    return bool(get_close_matches(letters, ["JOBQUEUE"], cutoff=0.85))


def _is_like_jobqueue(value: object) -> bool:
    return isinstance(value, dict) and any(key in Conf.settings for key in value)
