"""The Django app: label ``jobqueue``, so tables read ``jobqueue_queuedjob``."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
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
        """Import checks and every app's handlers."""
        from django_jobqueue import checks, immediate, jobs, logs  # noqa: F401
        from django_jobqueue.registry import autodiscover

        logs.connect()
        immediate.connect()
        autodiscover()
        post_migrate.connect(_declare, sender=self)


def _declare(using: str, **kwargs: Any) -> None:
    from django_jobqueue.conf import conf
    from django_jobqueue.registry import registry
    from django_jobqueue.store.connection import DjangoDatabase
    from django_jobqueue.store.job_types import declare

    if using == conf.database and connections[using].vendor == "postgresql":
        declare(DjangoDatabase(using), registry)
