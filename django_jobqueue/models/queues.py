"""Paused queues; and the overview, which has no rows."""

from __future__ import annotations

from django.db import models
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.fields import UTCDateTimeField, is_readable


class Queue(models.Model):
    """A named lane that workers subscribe to."""

    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, db_collation="C", primary_key=True
    )
    paused = models.BooleanField(_("paused"), db_default=False)
    paused_at = UTCDateTimeField(_("paused at"), null=True, blank=True)
    paused_by = models.TextField(_("paused by"), db_default="")
    paused_reason = models.TextField(_("reason"), db_default="", blank=True)
    resume_at = UTCDateTimeField(_("resume at"), null=True, blank=True)

    class Meta:
        verbose_name = _("queue")
        verbose_name_plural = _("queues")
        required_db_vendor = "postgresql"
        ordering = ["name"]
        default_permissions = ("view",)
        permissions = [("pause_queue", "Can pause and resume queues")]
        constraints = [
            models.CheckConstraint(
                condition=is_readable("resume_at"), name="jobqueue_queue_resume_at"
            ),
        ]

    def __str__(self) -> str:
        return self.name


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
