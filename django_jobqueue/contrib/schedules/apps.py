"""The app of schedules: label ``jobqueue_schedules``, so tables read
``jobqueue_schedules_schedule``."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from django_jobqueue.apps import migrated
from django_jobqueue.rooms import Room, Tab


class SchedulesConfig(Room):
    """Adds the scheduler, which fires what the code declares and operators make."""

    default = True
    name = "django_jobqueue.contrib.schedules"
    label = "jobqueue_schedules"
    verbose_name = _("Job queue: schedules")
    tabs = (Tab("schedule", pgettext_lazy("tab", "Schedules"), "s"),)
    subcommands = {
        "schedules": "django_jobqueue.contrib.schedules.schedules_command.Schedules",
        "schedule": "django_jobqueue.contrib.schedules.schedule_command.ShowSchedule",
    }
    checks = ("django_jobqueue.contrib.schedules.checks",)
    rights = {
        "Job viewer": ("view_schedule",),
        "Job operator": ("pause_schedule", "run_schedule"),
        "Job engineer": ("add_schedule", "change_schedule", "delete_schedule"),
    }
    personal_columns = ("django_jobqueue.contrib.schedules.personal_columns.SOURCES",)
    # A schedule that goes on finds room in its page.
    storage = "ALTER TABLE jobqueue_schedules_schedule SET (fillfactor = 50)"
    dropped_hourly = ("django_jobqueue.contrib.schedules.firing_rows.prune_firings",)
    declared = ("django_jobqueue.contrib.schedules.schedule_rows.steps",)
    maintenance_loops = ("django_jobqueue.contrib.schedules.scheduler.loop",)
    deadlines = ("django_jobqueue.contrib.schedules.due_schedules.DEADLINE",)
    concerns = ("django_jobqueue.contrib.schedules.schedule_states.concerns",)
    job_facts = ("django_jobqueue.contrib.schedules.admin.job_pages.of_job",)
    job_type_parts = ("django_jobqueue.contrib.schedules.admin.job_pages.of_job_type",)
    jumps = ("django_jobqueue.contrib.schedules.admin.job_pages.jump",)

    def ready(self) -> None:
        """Declare the schedules of the code after each migrate."""
        post_migrate.connect(declare, sender=self)


def declare(using: str, **kwargs: Any) -> None:
    """Write the schedules of the code to their rows, if these have a table."""
    from django_jobqueue.contrib.schedules import schedule_rows
    from django_jobqueue.contrib.schedules.models import Schedule
    from django_jobqueue.domain.registry import registry
    from django_jobqueue.store import job_types

    db, tables = migrated(using, **kwargs), connections[using].introspection
    if db is not None and Schedule._meta.db_table in tables.table_names():
        job_types.declare(db, registry)  # first, wherever this app is listed
        schedule_rows.declare(db)
