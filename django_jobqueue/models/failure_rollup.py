"""Counts of each failure by hour, job type and release; workers add to them."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.fields import UTCDateTimeField


class FailureRollup(models.Model):
    """Attempts of an hour that failed with one fingerprint."""

    pk = models.CompositePrimaryKey("fingerprint", "bucket", "job_type", "release")
    fingerprint = models.UUIDField(_("fingerprint"))
    bucket = UTCDateTimeField(_("bucket"))
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH, db_default="")
    release = models.CharField(_("release"), max_length=100, db_default="")
    failed = models.IntegerField(_("failed"), db_default=0)  # the job was over with it
    retried = models.IntegerField(_("retried"), db_default=0)

    class Meta:
        verbose_name = _("failure roll-up")
        verbose_name_plural = _("failure roll-ups")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        indexes = [models.Index("bucket", name="jobqueue_fr_bucket")]

    def __str__(self) -> str:
        return f"{self.bucket:%Y-%m-%d %H:%M} {self.fingerprint}"
