"""Paused queues; a queue without a row is open."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.fields import UTCDateTimeField


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

    def __str__(self) -> str:
        return self.name
