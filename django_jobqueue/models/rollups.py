"""Counts of each minute, and figures of the cluster, which workers keep."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.fields import CountsField, JSONField, UTCDateTimeField


class Rollup(models.Model):
    """Counts and histograms of a minute; of half an hour when older than an hour, of
    an hour when older than two days.

    The buckets of a histogram are those of ``django_jobqueue.domain.histogram``.
    """

    pk = models.CompositePrimaryKey("bucket", "job_type", "queue", "release")
    bucket = UTCDateTimeField(_("bucket"))
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    release = models.CharField(_("release"), max_length=100, db_default="")
    succeeded = models.IntegerField(_("succeeded"), db_default=0)
    failed = models.IntegerField(_("failed"), db_default=0)
    retried = models.IntegerField(_("retried"), db_default=0)
    other = models.IntegerField(_("other"), db_default=0)
    run_ms = models.BigIntegerField(_("run time (ms)"), db_default=0)
    wait_ms = models.BigIntegerField(_("wait (ms)"), db_default=0)
    run_histogram = CountsField(_("run times"), db_default=[])
    wait_histogram = CountsField(_("waits"), db_default=[])

    class Meta:
        verbose_name = _("roll-up")
        verbose_name_plural = _("roll-ups")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.bucket:%Y-%m-%d %H:%M} {self.job_type} {self.queue}"


class Figures(models.Model):
    """The last figures. A hot standby serves those that its primary has read."""

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    taken_at = UTCDateTimeField(_("as of"))
    figures = JSONField(_("figures"))

    class Meta:
        verbose_name = _("figures")
        verbose_name_plural = _("figures")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
