"""Jobs that are over; rows are inserted and pruned, and changed only to erase personal
data."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import ArchivedStatus
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField
from django_jobqueue.models.job import AbstractJob

UNSUCCESSFUL = ~Q(status=ArchivedStatus.SUCCEEDED)
# The newest job goes to an index's last page, as PostgreSQL fills it best; lists read
# backward.
BY_TIME = ["finished_at", "id"]


class ArchivedJob(AbstractJob):
    """A job that succeeded, failed, expired or was cancelled."""

    # No foreign key in the database: the archive outlives its job types, and checking
    # millions of rows would make a change of a job type take minutes.
    job_type = models.ForeignKey(
        "JobType",
        verbose_name=_("job type"),
        db_column="job_type",
        on_delete=models.DO_NOTHING,
        related_name="archived_jobs",
        db_constraint=False,
        db_index=False,
    )
    status = models.CharField(
        _("status"), max_length=10, choices=ArchivedStatus.choices
    )
    finished_at = UTCDateTimeField(_("finished at"), db_default=ClockTimestamp())
    wait_ms = models.BigIntegerField(
        _("waited (ms)"),
        null=True,
        help_text=_("Time from when the job was due to the start of its last attempt."),
    )
    run_ms = models.BigIntegerField(
        _("ran (ms)"), null=True, help_text=_("Duration of the last attempt.")
    )
    effective_max_attempts = models.IntegerField(
        _("attempts allowed"),
        null=True,
        blank=True,
        help_text=_(
            "The limit that applied when the job finished. Empty: unlimited, or not "
            "recorded, as for jobs that succeeded."
        ),
    )
    worker = models.CharField(_("worker"), max_length=200, db_default="")
    release = models.CharField(_("release"), max_length=100, db_default="")
    result = JSONField(_("result"), null=True, blank=True)
    error_class = models.CharField(_("error class"), max_length=200, db_default="")
    error_message = models.TextField(_("error message"), db_default="")
    fingerprint = models.UUIDField(_("fingerprint"), null=True, blank=True)
    erased_at = UTCDateTimeField(
        _("erased at"),
        null=True,
        blank=True,
        help_text=_("When data of the job were erased. It is not replayed as it is."),
    )

    class Meta(AbstractJob.Meta):
        verbose_name = _("archived job")
        verbose_name_plural = _("archived jobs")
        permissions = [
            ("replay_archivedjob", "Can replay archived jobs"),
            ("prune_archivedjob", "Can delete archived jobs"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=ArchivedStatus.values), name="jobqueue_a_status"
            ),
        ]
        indexes = [
            models.Index(fields=BY_TIME, name="jobqueue_a_newest"),
            models.Index(fields=["job_type", *BY_TIME], name="jobqueue_a_type"),
            models.Index(
                fields=["status", *BY_TIME],
                condition=UNSUCCESSFUL,
                name="jobqueue_a_unsuccessful",
            ),
            models.Index(
                fields=["job_type", *BY_TIME],
                condition=UNSUCCESSFUL,
                name="jobqueue_a_type_unsuccessful",
            ),
            models.Index(
                fields=["fingerprint", *BY_TIME],
                condition=Q(fingerprint__isnull=False),
                name="jobqueue_a_fingerprint",
            ),
            models.Index(
                "replay_of",
                condition=Q(replay_of__isnull=False),
                name="jobqueue_a_replay_of",
            ),
            models.Index(
                "bulk_operation_id",
                condition=Q(bulk_operation_id__isnull=False),
                name="jobqueue_a_operation",
            ),
        ]
