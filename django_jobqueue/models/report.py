"""Progress and lines of attempts; most attempts have none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self
from uuid import UUID

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField


class ReportQuerySet(models.QuerySet["Report"]):
    """Reports of attempts."""

    def latest_for(self, job_ids: Iterable[UUID]) -> Self:
        """The report of the latest attempt of each of these jobs that has one."""
        reports = self.filter(job_id__in=list(job_ids))
        return reports.order_by("job_id", "-fence").distinct("job_id")


class Report(models.Model):
    """The last progress of one attempt, and the lines that it wrote."""

    id = models.BigAutoField(primary_key=True)
    job_id = models.UUIDField(_("job"))  # queued or archived, so no foreign key
    fence = models.BigIntegerField(
        _("fence"),
        help_text=_("Number of the claim, which keeps the reports of attempts apart."),
    )
    number = models.IntegerField(_("attempt"))
    done = models.FloatField(_("done"), null=True, blank=True)
    total = models.FloatField(_("of"), null=True, blank=True)
    note = models.CharField(_("note"), max_length=500, db_default="")
    lines = JSONField(
        _("lines"),
        db_default=[],
        help_text=_("Each line is a list: seconds since 1970, level, text."),
    )
    dropped = models.IntegerField(
        _("dropped"),
        db_default=0,
        help_text=_("Number of lines dropped because the limit was reached."),
    )
    queries = models.IntegerField(
        _("queries"),
        null=True,
        blank=True,
        help_text=_("Number of queries sent to databases."),
    )
    query_ms = models.FloatField(_("time of queries (ms)"), null=True, blank=True)
    started_at = UTCDateTimeField(_("started at"), db_default=ClockTimestamp())
    updated_at = UTCDateTimeField(_("updated at"), db_default=ClockTimestamp())

    objects = ReportQuerySet.as_manager()

    class Meta:
        verbose_name = _("report")
        verbose_name_plural = _("reports")
        required_db_vendor = "postgresql"
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["job_id", "fence"], name="jobqueue_report_attempt"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.job_id} attempt {self.number}"
