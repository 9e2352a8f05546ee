"""The app of transfers: label ``jobqueue_transfer``; no tables."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from django_jobqueue.rooms import Room


class TransferConfig(Room):
    """Adds ``manage.py jobqueue dump``, ``load`` and ``move``."""

    default = True
    name = "django_jobqueue.contrib.transfer"
    label = "jobqueue_transfer"
    verbose_name = _("Job queue: transfer")
    subcommands = {
        "dump": "django_jobqueue.contrib.transfer.dump_command.Dump",
        "load": "django_jobqueue.contrib.transfer.dump_command.Load",
        "move": "django_jobqueue.contrib.transfer.move_command.Move",
    }
