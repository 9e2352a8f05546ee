"""The app of the console: label ``jobqueue_console``, so tables read
``jobqueue_console_savedview``."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections, transaction
from django.db.models.signals import post_delete
from django.utils.translation import gettext_lazy as _

from django_jobqueue.conf import conf
from django_jobqueue.rooms import Room, load


class ConsoleConfig(Room):
    """Adds saved views, searches in the background, ``jobqueue top`` and
    ``jobqueue bench``."""

    default = True
    name = "django_jobqueue.contrib.console"
    label = "jobqueue_console"
    verbose_name = _("Job queue: console")
    subcommands = {
        "top": "django_jobqueue.contrib.console.top_command.Top",
        "bench": "django_jobqueue.contrib.console.bench_command.Bench",
    }
    rights = {
        "Job viewer": ("add_savedview", "view_jobsearch"),
        "Job operator": ("share_savedview", "start_jobsearch"),
    }
    personal_columns = ("django_jobqueue.contrib.console.personal_columns.SOURCES",)
    chunked_work = {"search": "django_jobqueue.contrib.console.job_searches.WORK"}
    dropped_hourly = ("django_jobqueue.contrib.console.job_searches.drop",)
    above_lists = ("django_jobqueue.contrib.console.admin.view_menu.views_above",)
    below_search = (
        "django_jobqueue.contrib.console.admin.job_search_actions.search_all",
    )

    def ready(self) -> None:
        """Forget the views of users who go."""
        post_delete.connect(
            forget_views,
            sender=settings.AUTH_USER_MODEL,
            dispatch_uid="jobqueue_console.forget_views",
        )


def forget_views(
    sender: type[Any], instance: Any, using: str, **kwargs: object
) -> None:
    """The views that a user alone sees go with the user, so that whoever has the same
    name later does not find them: once the user is gone for good. Whatever goes wrong
    is logged: it must not keep anybody from deleting users."""
    if connections[conf.database].vendor != "postgresql":  # MODE does without tables
        return

    def forget() -> None:  # Django logs its name
        load("django_jobqueue.contrib.console.saved_views.forget")(name)

    name = instance.get_username()
    transaction.on_commit(forget, using=using, robust=True)
