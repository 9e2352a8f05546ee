"""The Django app: label ``jobqueue``, so tables read ``jobqueue_queuedjob``."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import django
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, register
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_jobqueue.enqueueing.immediate_jobs import MemoryRecord


class JobQueueConfig(AppConfig):
    """Finds handlers, declares their job types after migrate, registers the checks."""

    name = "django_jobqueue"
    label = "jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks, and import the queue's own jobs and every app's
        handlers."""
        from django_jobqueue import logs
        from django_jobqueue.conf import conf
        from django_jobqueue.domain.registry import autodiscover
        from django_jobqueue.enqueueing.immediate_jobs import memory
        from django_jobqueue.store.interval_loader import read_each_style

        for tag, deploy, check in CHECKS:
            register(check, tag, deploy=deploy)
        logs.connect()
        if conf.metrics_enqueued:
            _count_enqueues()
        memory.run = _run
        autodiscover(*_modules_of_the_framework())
        connection_created.connect(
            read_each_style, dispatch_uid="jobqueue.interval_style"
        )
        pre_migrate.connect(_before_tables, sender=self)
        post_migrate.connect(_after_tables, sender=self)


def _check(tag: str, deploy: bool, **kwargs: Any) -> list[CheckMessage]:
    """Load the checks, and run those that registered so."""
    from django_jobqueue.checks import (  # noqa: F401
        alerts,
        endpoints,
        followers,
        http_api,
        key_limits,
        lazy_loading,
        project_settings,
        schedules,
    )

    return lazy_loading.run(tag, deploy, **kwargs)


# The tags of our checks, and whether they run with --deploy alone. The same objects
# whenever ready() runs, which an override of INSTALLED_APPS has it do again, or each
# message would be there twice.
CHECKS: Final = tuple(
    (tag, deploy, partial(_check, tag, deploy))
    for tag, deploy in (("jobqueue", False), ("jobqueue", True), (Tags.database, False))
)


def _count_enqueues() -> None:
    """Count them, if the extra is installed; a check says if it is not."""
    from django_jobqueue.exceptions import MetricsExtraMissing
    from django_jobqueue.metrics.enqueued_jobs import count_enqueues

    with suppress(MetricsExtraMissing):
        count_enqueues()


def _run(record: MemoryRecord) -> None:
    """Load what runs jobs when they are enqueued, and run this one."""
    from django_jobqueue.enqueueing.immediate_jobs import memory
    from django_jobqueue.execution import immediate

    memory.run = immediate.run
    immediate.run(record)


def _modules_of_the_framework() -> tuple[str, ...]:
    """Where the tasks of Django's framework are, if the project gives them to us."""
    framework = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    if not settings.is_overridden("TASKS") or find_spec(framework) is None:  # type: ignore[misc]  # it has
        return ()
    return ("tasks",) if any(map(_is_ours, settings.TASKS.values())) else ()


def _is_ours(params: dict[str, object]) -> bool:
    """Whether this alias of ``TASKS`` has a backend of ours, which is then loaded."""
    try:
        backend = import_string(str(params.get("BACKEND")))
    except ImportError:  # the framework says so when it is used
        return False
    ours = sys.modules.get("django_jobqueue.backends.backend")
    if ours is None or not isinstance(backend, type):
        return False
    return issubclass(backend, ours.JobQueueBackend)


def _before_tables(**kwargs: Any) -> None:
    from django_jobqueue.migrations import _syncdb

    _syncdb.before_tables(**kwargs)


def _after_tables(**kwargs: Any) -> None:
    from django_jobqueue.migrations import _syncdb

    _syncdb.after_tables(**kwargs)
    _syncdb.mend_ids(kwargs["using"])
    _declare(**kwargs)


def _declare(using: str, **kwargs: Any) -> None:
    from django_jobqueue.conf import conf
    from django_jobqueue.domain.registry import registry
    from django_jobqueue.domain.schedules import schedules
    from django_jobqueue.store import job_types
    from django_jobqueue.store.connection import DjangoDatabase
    from django_jobqueue.store.schedules import declare as declare_schedules

    plan = kwargs.get("plan", [])
    is_going_back = any(backwards for _migration, backwards in plan)
    usable = connections[using].vendor == "postgresql" and not is_going_back
    if using == conf.database and usable:
        db = DjangoDatabase(using)
        job_types.declare(db, registry)
        declare_schedules.declare(db, schedules, [each.name for each in registry])
