"""The Django app: label ``jobqueue``, so tables read ``jobqueue_queuedjob``."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import django
from django.conf import settings
from django.core.checks import CheckMessage, Tags, register
from django.db import connections
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.rooms import Room, Tab, offered

if TYPE_CHECKING:
    from django_jobqueue.enqueueing.immediate_jobs import MemoryRecord
    from django_jobqueue.store.connection import DjangoDatabase


class JobQueueConfig(Room):
    """Finds handlers, declares their job types after migrate, registers the checks."""

    default = True
    name = "django_jobqueue"
    label = "jobqueue"
    verbose_name = _("Job queue")
    tabs = (
        Tab("overview", _("Overview"), "o"),
        Tab("queuedjob", pgettext_lazy("tab", "Queued"), "q"),
        Tab("archivedjob", pgettext_lazy("tab", "Archive"), "a"),
        Tab("failuregroup", _("Failures"), "f"),
        Tab("jobtype", pgettext_lazy("tab", "Types"), "t"),
        Tab("queue", _("Queues"), "u"),
        Tab("host", pgettext_lazy("tab", "Hosts"), "h"),
        Tab("worker", _("Workers"), "w"),
        Tab("keylimit", pgettext_lazy("tab", "Limits"), "m"),
        Tab("bulkoperation", pgettext_lazy("tab", "Operations"), "b"),
        Tab("auditentry", pgettext_lazy("tab", "Audit"), "d"),
    )
    checks = tuple(
        f"django_jobqueue.checks.{name}"
        for name in (
            "followers",
            "key_limits",
            "project_settings",
        )
    )

    chunked_work = {"operation": "django_jobqueue.operations.bulk.WORK"}
    personal_columns = ("django_jobqueue.store.personal_columns.SOURCES",)
    row_pages = {"moving": "django_jobqueue.admin.workers.worker_summary.MOVE"}
    rights = {
        "Job viewer": (
            "view_archivedjob",
            "view_auditentry",
            "view_bulkoperation",
            "view_failuregroup",
            "view_host",
            "view_jobtype",
            "view_keylimit",
            "view_overview",
            "view_queue",
            "view_queuedjob",
            "view_worker",
        ),
        # Whoever is on call: sees what a job is about, stops the bleeding, and repairs.
        "Job operator": (
            "cancel_queuedjob",
            "change_failuregroup",
            "control_worker",
            "free_unique_key",
            "pause_jobtype",
            "pause_queue",
            "release_queuedjob",
            "replay_archivedjob",
            "reschedule_queuedjob",
            "start_bulkoperation",
            "view_job_data",
        ),
        # Says what is to be done instead of the code: other data, other policies.
        "Job engineer": (
            "change_jobtype",
            "change_keylimit",
            "edit_job_data",
            "enqueue_job",
        ),
        # What cannot be taken back, and what is secret.
        "Job admin": (
            "prune_archivedjob",
            "reveal_job_data",
            "unbounded_bulkoperation",
            "work_remotely",
        ),
    }

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
    """Load the checks of all rooms, and run those that registered so."""
    from django_jobqueue.checks import lazy_loading

    for _module in offered("checks"):
        pass  # loaded, it has registered them
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
    """True if this alias of ``TASKS`` has a backend of ours, which is then loaded."""
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
    from django_jobqueue.domain.registry import registry
    from django_jobqueue.store import job_types

    if (db := migrated(using, **kwargs)) is not None:
        job_types.declare(db, registry)


def migrated(using: str, **kwargs: Any) -> DjangoDatabase | None:
    """The database of the jobs, if this one is it, and was not migrated backwards."""
    from django_jobqueue.conf import conf
    from django_jobqueue.store.connection import DjangoDatabase

    plan = kwargs.get("plan", [])
    is_going_back = any(backwards for _migration, backwards in plan)
    usable = connections[using].vendor == "postgresql" and not is_going_back
    return DjangoDatabase(using) if using == conf.database and usable else None
