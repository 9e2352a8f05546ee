"""The app of the importers: label ``jobqueue_importing``; no tables."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_jobqueue.rooms import Room


class ImportingConfig(Room):
    """Adds ``manage.py jobqueue import``."""

    default = True
    name = "django_jobqueue.contrib.importing"
    label = "jobqueue_importing"
    verbose_name = _("Job queue: import")
    needs = ("django_jobqueue.contrib.schedules",)
    subcommands = {"import": "django_jobqueue.contrib.importing.import_command.Import"}
