"""Unique keys that are held for a time, whatever becomes of the job."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import UTCDateTimeField


class UniqueWindow(models.Model):
    """A unique key, from the enqueue of its job until a moment, or forever.

    A row changes only when a job is made, so its indexes cost duplicates nothing.
    """

    key = models.UUIDField(_("unique key"), primary_key=True)
    job_id = models.UUIDField(_("job"))  # queued, archived or pruned: no foreign key
    held_until = UTCDateTimeField(
        _("held until"), null=True, blank=True, help_text=_("Empty: forever.")
    )
    # By the clock that ``held_until`` was computed with, which may be set back since.
    opened_at = UTCDateTimeField(_("opened at"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("unique window")
        verbose_name_plural = _("unique windows")
        required_db_vendor = "postgresql"
        default_permissions = ()
        indexes = [
            models.Index("job_id", name="jobqueue_w_job"),
            models.Index(
                "held_until",
                condition=models.Q(held_until__isnull=False),
                name="jobqueue_w_held_until",
            ),
        ]

    def __str__(self) -> str:
        return str(self.key)
