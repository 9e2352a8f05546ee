"""Totals of attempts and finished jobs, which never fall: workers add to them, and so
do the counts of jobs that others archived."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField


class Total(models.Model):
    """The counts of one job type in one queue since the tables were made."""

    pk = models.CompositePrimaryKey("job_type", "queue")
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    attempts_succeeded = models.BigIntegerField(_("succeeded attempts"), db_default=0)
    attempts_failed = models.BigIntegerField(_("failed attempts"), db_default=0)
    attempts_retried = models.BigIntegerField(_("retried attempts"), db_default=0)
    attempts_snoozed = models.BigIntegerField(_("snoozed attempts"), db_default=0)
    attempts_cancelled = models.BigIntegerField(_("cancelled attempts"), db_default=0)
    attempts_released = models.BigIntegerField(_("released attempts"), db_default=0)
    attempts_crashed = models.BigIntegerField(_("crashed attempts"), db_default=0)
    jobs_succeeded = models.BigIntegerField(_("succeeded jobs"), db_default=0)
    jobs_failed = models.BigIntegerField(_("failed jobs"), db_default=0)
    jobs_expired = models.BigIntegerField(_("expired jobs"), db_default=0)
    jobs_cancelled = models.BigIntegerField(_("cancelled jobs"), db_default=0)
    run_ms = models.BigIntegerField(_("run time (ms)"), db_default=0)
    wait_ms = models.BigIntegerField(_("wait (ms)"), db_default=0)
    attempts_sum = models.BigIntegerField(_("attempts of jobs"), db_default=0)
    run_histogram = JSONField(_("run times"), db_default=[])
    wait_histogram = JSONField(_("waits"), db_default=[])
    attempts_histogram = JSONField(_("numbers of attempts"), db_default=[])
    changed_at = UTCDateTimeField(_("changed at"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("total")
        verbose_name_plural = _("totals")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job_type} {self.queue}"


class ArchivedCount(models.Model):
    """How many jobs one statement archived; the maintenance process adds it up.

    Rows are only inserted and deleted, so a cancellation in a long transaction keeps
    no worker from counting.
    """

    id = models.BigAutoField(primary_key=True)
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    status = models.CharField(
        _("status"), max_length=10, choices=ArchivedStatus.choices
    )
    jobs = models.IntegerField(_("jobs"))

    class Meta:
        verbose_name = _("count of archived jobs")
        verbose_name_plural = _("counts of archived jobs")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job_type} {self.queue} {self.status}: {self.jobs}"
