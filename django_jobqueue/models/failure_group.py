"""Attempts that did not succeed, in groups of the same failure, and their counts."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.states import AttemptEnd, GroupState
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField

NEWEST = (F("last_seen").desc(), F("fingerprint").desc())


class FailureGroup(models.Model):
    """A failure that was seen, and what people decided about it.

    No count is kept here, so a fleet that fails does not queue up at one row: counts
    come from the index on the archive.
    """

    fingerprint = models.UUIDField(_("fingerprint"), primary_key=True)
    coarse = models.UUIDField(_("coarse fingerprint"), db_index=True)
    error_class = models.CharField(_("error class"), max_length=200)
    frame = models.CharField(_("frame"), max_length=300)
    template = models.TextField(_("message"), db_default="")
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=GroupState.choices,
        db_default=GroupState.OPEN,
    )
    first_seen = UTCDateTimeField(_("first seen"), db_default=ClockTimestamp())
    last_seen = UTCDateTimeField(
        _("last seen"),
        db_default=ClockTimestamp(),
        help_text=_(
            "When a worker last recorded such a failure; accurate to some ten seconds."
        ),
    )
    resolved_at = UTCDateTimeField(_("resolved at"), null=True, blank=True)
    resolved_in = models.CharField(
        _("resolved in release"), max_length=100, db_default=""
    )
    excused = JSONField(
        _("excused releases"),
        db_default=[],
        help_text=_("Releases whose failures do not reopen it."),
    )
    regressed_at = UTCDateTimeField(_("regressed at"), null=True, blank=True)
    ignored_until = UTCDateTimeField(_("ignored until"), null=True, blank=True)
    assignee = models.TextField(_("assignee"), db_default="", blank=True)
    notes = models.TextField(_("notes"), db_default="", blank=True)
    changed_at = UTCDateTimeField(_("changed at"), null=True, blank=True)
    changed_by = models.TextField(_("changed by"), db_default="")

    class Meta:
        verbose_name = _("failure group")
        verbose_name_plural = _("failure groups")
        required_db_vendor = "postgresql"
        default_permissions = ("view", "change")
        indexes = [
            models.Index(*NEWEST, name="jobqueue_g_newest"),
            models.Index(F("state"), *NEWEST, name="jobqueue_g_state"),
        ]

    def __str__(self) -> str:
        return f"{self.error_class} in {self.frame}"


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
