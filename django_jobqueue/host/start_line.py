"""What workers say when they start: what they will do, and where."""

from __future__ import annotations

import logging

from django.db import connections

from django_jobqueue import logs
from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import handler_names, missing_modules
from django_jobqueue.processes import identity
from django_jobqueue.processes.worker_config import Plan

logger = logging.getLogger("django_jobqueue.supervisor")


def log_start(plan: Plan, processes: int | None) -> None:
    """Log what is about to start; ``processes`` is None for an embedded worker. Warn of
    what is probably a slip: no handlers, or modules of handlers that no app has. From
    here on successes are logged, in forks too, if the level asks for it."""
    logs.connect_successes()
    count = len(handler_names())
    logger.info(
        "django_jobqueue %s starts %s; queues: %s; %d %s; %s; %s",
        identity.versions()["django-jobqueue"],
        _room(plan, processes),
        ", ".join(plan.queues) if plan.queues else "every",
        count,
        "handler" if count == 1 else "handlers",
        _database(),
        f"release {conf.release}" if conf.release else "no release is set",
    )
    for module in missing_modules():
        logger.warning(
            "JOBQUEUE['MODULES'] names %r, which no installed app has", module
        )
    if not count:
        logger.warning(
            "There are no handlers, so no job can run. Declare functions with @job in "
            "the module %s of an app in INSTALLED_APPS",
            " or ".join(conf.modules),
        )


def _room(plan: Plan, processes: int | None) -> str:
    kind = "an embedded worker"
    if processes is not None:
        kind = f"{processes} worker process{'es' if processes > 1 else ''}"
    threads = f"{plan.threads} thread{'' if plan.threads == 1 else 's'}"
    return f"{kind} with {threads} and {plan.async_slots} async slots"


def _database() -> str:
    """The database of the jobs as its settings have it, but for the password."""
    alias = conf.database
    settings = connections[alias].settings_dict
    name = settings.get("NAME") or settings.get("OPTIONS", {}).get("service") or "?"
    host = settings.get("HOST") or "the local socket"
    port = f":{settings['PORT']}" if settings.get("PORT") else ""
    return f"database {alias!r}, which is {name!r} at {host}{port}"
