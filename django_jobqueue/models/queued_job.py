"""Queued and running jobs; the table stays small."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import LONGEST, NAME_LENGTH, READABLE
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.models.fields import UTCDateTimeField
from django_jobqueue.models.job import AbstractJob

QUEUED = Q(status=QueuedStatus.QUEUED)

# The defaults of a row that leaves its queue and its priority, and with them all else,
# to its job type: a trigger fills it in. No queue and no priority are like that.
QUEUE_OF_TYPE = ""
PRIORITY_OF_TYPE = 32_767


class QueuedJob(AbstractJob):
    """A job that is queued or running."""

    job_type = models.ForeignKey(
        "JobType",
        verbose_name=_("job type"),
        db_column="job_type",
        on_delete=models.PROTECT,
        related_name="queued_jobs",
        db_index=False,  # the ready index serves
    )
    queue = models.CharField(
        _("queue"),
        max_length=NAME_LENGTH,
        db_collation="C",
        db_default=QUEUE_OF_TYPE,
    )
    priority = models.SmallIntegerField(
        _("priority"),
        db_default=PRIORITY_OF_TYPE,
        help_text=_("-100 to 100; higher runs first."),
    )
    status = models.CharField(
        _("status"),
        max_length=10,
        choices=QueuedStatus.choices,
        db_default=QueuedStatus.QUEUED,
    )
    fence = models.BigIntegerField(
        _("fence"),
        db_default=0,
        help_text=_(
            "Number of the claim. Only its worker may write about the running job."
        ),
    )
    worker_id = models.BigIntegerField(
        _("worker"), null=True, blank=True, help_text=_("Empty unless running.")
    )
    quarantined = models.BooleanField(
        _("quarantined"),
        db_default=False,
        help_text=_("Runs in a process of its own, because its workers died."),
    )
    cancel_requested_at = UTCDateTimeField(
        _("cancel requested at"), null=True, blank=True
    )
    cancel_reason = models.TextField(
        _("cancel reason"),
        null=True,
        blank=True,
        help_text=_("The reason given with the cancel request."),
    )
    unique_key = models.UUIDField(
        _("unique key"),
        null=True,
        blank=True,
        help_text=_(
            "While this job is in the queue, no other job can have the same key."
        ),
    )
    unique_until_started = models.BooleanField(
        _("unique until started"),
        db_default=False,
        help_text=_(
            "The key becomes free when the job is claimed, not when it finishes."
        ),
    )
    awaited = models.BooleanField(
        _("awaited"),
        db_default=False,
        help_text=_("Someone waits for this job and is notified when it finishes."),
    )
    announce = models.BooleanField(
        _("announce"),
        db_default=True,
        help_text=_("Idle workers are notified when the INSERT commits."),
    )

    class Meta(AbstractJob.Meta):
        verbose_name = _("queued job")
        verbose_name_plural = _("queued jobs")
        permissions = [
            ("cancel_queuedjob", "Can cancel queued jobs"),
            ("reschedule_queuedjob", "Can reschedule queued jobs"),
            ("release_queuedjob", "Can release running jobs"),
            ("free_unique_key", "Can free unique keys of jobs"),
            ("view_job_data", "Can view data and results of jobs"),
            ("reveal_job_data", "Can view secrets in data and results of jobs"),
            ("edit_job_data", "Can edit data of jobs, and replay jobs with other data"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=QueuedStatus.values), name="jobqueue_q_status"
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(-100, 100)), name="jobqueue_q_priority"
            ),
            models.CheckConstraint(
                condition=Q(run_after__range=READABLE)
                & Q(created_at__range=READABLE)
                & (Q(expires_at__isnull=True) | Q(expires_at__range=READABLE)),
                name="jobqueue_q_moments",
            ),
            models.CheckConstraint(
                condition=Q(timeout__isnull=True)
                | Q(timeout__gt=timedelta(0), timeout__lte=LONGEST),
                name="jobqueue_q_timeout",
            ),
            models.UniqueConstraint(
                fields=["unique_key"],
                condition=Q(unique_key__isnull=False),
                name="jobqueue_q_unique",
            ),
        ]
        indexes = [
            # A lane is a queue, a priority and a job type; a claim reads each lane in
            # order. With the type in the index a paused, unknown or limited type costs
            # a claim nothing, however many of its jobs wait.
            models.Index(
                "queue",
                "priority",
                "job_type",
                "run_after",
                "id",
                condition=QUEUED & Q(quarantined=False),
                name="jobqueue_q_ready",
            ),
            models.Index(
                "job_type",
                "worker_id",
                condition=Q(status=QueuedStatus.RUNNING),
                name="jobqueue_q_running",
            ),
            # A claim of a type with a limit by key goes from key to key.
            models.Index(
                "queue",
                "priority",
                "job_type",
                "limit_key",
                "run_after",
                "id",
                condition=QUEUED & Q(quarantined=False, limit_key__isnull=False),
                name="jobqueue_q_keyed",
            ),
            models.Index(
                "limit_key",
                condition=Q(status=QueuedStatus.RUNNING, limit_key__isnull=False),
                name="jobqueue_q_keyed_running",
            ),
            # Where order is strict, a job that was started before goes first.
            models.Index(
                "limit_key",
                "run_after",
                "id",
                condition=QUEUED & Q(limit_key__isnull=False) & ~Q(fence=0),
                name="jobqueue_q_keyed_started",
            ),
            models.Index(
                "expires_at",
                condition=QUEUED & Q(expires_at__isnull=False),
                name="jobqueue_q_expires",
            ),
            models.Index(
                "run_after",
                "id",
                condition=QUEUED & Q(quarantined=True),
                name="jobqueue_q_quarantined",
            ),
            models.Index(
                "replay_of",
                condition=Q(replay_of__isnull=False),
                name="jobqueue_q_replay_of",
            ),
            models.Index(
                "bulk_operation_id",
                condition=Q(bulk_operation_id__isnull=False),
                name="jobqueue_q_operation",
            ),
        ]
