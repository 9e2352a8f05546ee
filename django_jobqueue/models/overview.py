"""The overview, as Django's admin and its permissions know it: it has no rows."""

from __future__ import annotations

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.queue import Queue


class Overview(Queue):
    """The front page of the job queue, which gives it its permission and its place in
    Django's index."""

    class Meta:
        proxy = True
        verbose_name = _("overview")
        # The space, which no browser shows, has it lead: Django's index, its menu and
        # those of themes sort the pages of an app by this name.
        verbose_name_plural = format_lazy(" {name}", name=_("Overview"))
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
