"""Operators' actions: in the admin, by commands, and by code that names somebody."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField


class AuditEntry(models.Model):
    """One act; rows are inserted and dropped, never changed."""

    id = models.BigAutoField(primary_key=True)
    at = UTCDateTimeField(_("time"), db_default=ClockTimestamp())
    by = models.TextField(_("by"))
    verb = models.CharField(_("act"), max_length=100)
    count = models.IntegerField(_("count"), db_default=1)  # of what it changed
    about = JSONField(_("about"), db_default=[])  # ids and names
    details = JSONField(_("details"), db_default={})

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit entries")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        indexes = [
            models.Index(fields=["at", "id"], name="jobqueue_audit_newest"),
            models.Index(fields=["by", "at", "id"], name="jobqueue_audit_by"),
            models.Index(fields=["verb", "at", "id"], name="jobqueue_audit_verb"),
        ]

    def __str__(self) -> str:
        return f"{self.verb} by {self.by}"
