"""Attempts that did not succeed; a successful attempt stands on its archived job."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.states import AttemptEnd
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import JSONField, UTCDateTimeField


class Failure(models.Model):
    """One attempt that failed, timed out, crashed, or was put off."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField(_("job"))  # queued or archived, so no foreign key
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH)
    number = models.IntegerField(_("attempt"))
    end = models.CharField(_("end"), max_length=10, choices=AttemptEnd.choices)
    reason = models.TextField(_("reason"), db_default="")
    started_at = UTCDateTimeField(_("started at"), null=True, blank=True)
    finished_at = UTCDateTimeField(_("finished at"), db_default=ClockTimestamp())
    worker = models.CharField(_("worker"), max_length=200, db_default="")
    release = models.CharField(_("release"), max_length=100, db_default="")
    error_class = models.CharField(_("error class"), max_length=200, db_default="")
    error_message = models.TextField(_("error message"), db_default="")
    traceback = models.TextField(_("traceback"), db_default="")
    frames = JSONField(_("frames"), db_default=[])
    log_tail = models.TextField(_("log"), db_default="")
    fingerprint = models.UUIDField(_("fingerprint"), null=True, blank=True)

    class Meta:
        verbose_name = _("failure")
        verbose_name_plural = _("failures")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        indexes = [
            models.Index("job_id", "id", name="jobqueue_f_job"),
            models.Index(
                F("fingerprint"),
                F("finished_at").desc(),
                condition=Q(fingerprint__isnull=False),
                name="jobqueue_f_fingerprint",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}: {self.error_class or self.end}"
