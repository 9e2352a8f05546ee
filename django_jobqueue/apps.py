"""The Django app: label ``jobqueue``, so tables read ``jobqueue_queuedjob``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import django
from django.apps import AppConfig
from django.conf import settings
from django.db import connections
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _


class JobQueueConfig(AppConfig):
    """Finds handlers, declares their job types after migrate, registers the checks."""

    name = "django_jobqueue"
    label = "jobqueue"
    verbose_name = _("Job queue")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Import checks, the queue's own jobs and every app's handlers."""
        from django_jobqueue import logs
        from django_jobqueue.checks import followers  # noqa: F401
        from django_jobqueue.domain.registry import autodiscover
        from django_jobqueue.execution import immediate

        logs.connect()
        immediate.connect()
        autodiscover(*_modules_of_the_framework())
        post_migrate.connect(_declare, sender=self)


def _modules_of_the_framework() -> tuple[str, ...]:
    """Where the tasks of Django's framework are, if the project gives them to us."""
    framework = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"
    uses = settings.is_overridden("TASKS")  # type: ignore[misc]  # it has
    if not uses or find_spec(framework) is None:
        return ()
    from django_jobqueue.backends.in_use import is_in_use

    return ("tasks",) if is_in_use() else ()


def _declare(using: str, **kwargs: Any) -> None:
    from django_jobqueue.conf import conf
    from django_jobqueue.domain.registry import registry
    from django_jobqueue.store.connection import DjangoDatabase
    from django_jobqueue.store.job_types import declare

    plan = kwargs.get("plan", [])
    is_going_back = any(backwards for _migration, backwards in plan)
    usable = connections[using].vendor == "postgresql" and not is_going_back
    if using == conf.database and usable:
        declare(DjangoDatabase(using), registry)
