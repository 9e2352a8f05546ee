"""Job types and their policies, as the code declares and operators override them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH, NO_LIMIT
from django_jobqueue.domain.rates import LENGTH
from django_jobqueue.domain.states import Delivery
from django_jobqueue.models.fields import (
    ClockTimestamp,
    JSONField,
    UTCDateTimeField,
    is_readable,
)
from django_jobqueue.models.limits import is_rate, is_rate_override
from django_jobqueue.text.data_summary import LONGEST_TEMPLATE


class JobType(models.Model):
    """A kind of job, declared by the code; an empty override means the code's value."""

    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, db_collation="C", primary_key=True
    )

    # What the code says, refreshed by migrate and by every runworkers.
    handler = models.CharField(_("handler"), max_length=300, db_default="")
    description = models.TextField(_("description"), db_default="")
    queue = models.CharField(
        _("queue"), max_length=NAME_LENGTH, db_collation="C", db_default="default"
    )
    priority = models.SmallIntegerField(_("priority"), db_default=0)
    max_attempts = models.IntegerField(
        _("max attempts"), null=True, blank=True, db_default=5
    )
    backoff = models.CharField(_("backoff"), max_length=200, db_default="exponential")
    retry = JSONField(
        _("retry rules"),
        db_default=[],
        help_text=_("Retry rules by exception class."),
    )
    timeout = models.DurationField(_("timeout"), null=True, blank=True)
    delivery = models.CharField(
        _("delivery"),
        max_length=20,
        choices=Delivery.choices,
        db_default=Delivery.AT_LEAST_ONCE,
    )
    concurrency = models.IntegerField(_("concurrency"), null=True, blank=True)
    rate = models.CharField(
        _("rate"),
        max_length=LENGTH,
        null=True,
        blank=True,
        help_text=_("How many start in any window. Empty: unlimited."),
    )
    atomic = models.BooleanField(_("atomic"), db_default=False)
    expires_in = models.DurationField(_("expires in"), null=True, blank=True)
    max_crashes = models.IntegerField(_("max crashes"), db_default=3)
    sensitive = JSONField(_("sensitive"), db_default=[])
    indexed = JSONField(_("indexed"), db_default=[])
    summary = models.CharField(
        _("summary"), null=True, blank=True, max_length=LONGEST_TEMPLATE
    )
    unique_by = models.CharField(
        _("unique by"),
        max_length=300,
        db_default="",
        help_text=_("The arguments by which jobs are unique. Empty: not unique."),
    )
    unique_rule = JSONField(
        _("unique rule"),
        null=True,
        blank=True,
        help_text=_("The unique rule in the database's form. Empty: not unique."),
    )
    limit_name = models.CharField(
        _("limit by key"),
        max_length=NAME_LENGTH,
        db_collation="C",
        null=True,
        blank=True,
        help_text=_("The limit that its jobs count against, each under its key."),
    )
    limit_rule = JSONField(
        _("rule of the key"),
        null=True,
        blank=True,
        help_text=_("How the database computes a job's key."),
    )
    weight_rule = JSONField(
        _("rule of the weight"),
        null=True,
        blank=True,
        help_text=_("How the database computes a job's weight, and for which rates."),
    )
    followers = JSONField(_("followers"), null=True, blank=True)
    follower_arguments = JSONField(
        _("arguments as a follower"), db_default=["job", "status"]
    )
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())
    declared_at = UTCDateTimeField(_("declared at"), db_default=ClockTimestamp())

    # What operators say instead.
    priority_override = models.SmallIntegerField(_("priority"), null=True, blank=True)
    max_attempts_override = models.IntegerField(
        _("max attempts"),
        null=True,
        blank=True,
        help_text=_("-1: unlimited."),
    )
    timeout_override = models.DurationField(
        _("timeout"), null=True, blank=True, help_text=_("0 is no time limit.")
    )
    concurrency_override = models.IntegerField(
        _("concurrency"),
        null=True,
        blank=True,
        help_text=_(
            "Jobs running at once in the whole cluster; 0 pauses, -1 is unlimited."
        ),
    )
    rate_override = models.CharField(
        _("rate"),
        max_length=LENGTH,
        null=True,
        blank=True,
        help_text=_(
            "Starts in any window in the whole cluster, for example: 100/m, or 10/s "
            "burst 3, or unlimited."
        ),
    )
    keep_succeeded_override = models.DurationField(
        _("keep succeeded jobs for"), null=True, blank=True
    )
    keep_unsuccessful_override = models.DurationField(
        _("keep other jobs for"), null=True, blank=True
    )
    summary_override = models.CharField(
        _("summary"),
        null=True,
        blank=True,
        max_length=LONGEST_TEMPLATE,
        help_text=_("Shown for each job in lists, for example: order {order_id}."),
    )
    paused = models.BooleanField(_("paused"), db_default=False)
    paused_at = UTCDateTimeField(_("paused at"), null=True, blank=True)
    paused_by = models.TextField(_("paused by"), db_default="")
    paused_reason = models.TextField(_("reason"), db_default="", blank=True)
    resume_at = UTCDateTimeField(
        _("resume at"),
        null=True,
        blank=True,
        help_text=_("When the pause ends by itself. Empty: never."),
    )

    class Meta:
        verbose_name = _("job type")
        verbose_name_plural = _("job types")
        required_db_vendor = "postgresql"
        ordering = ["name"]
        default_permissions = ("view", "change")
        permissions = [
            ("pause_jobtype", "Can pause and resume job types"),
            ("enqueue_job", "Can enqueue jobs by hand"),
        ]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="jobqueue_t_name"),
            models.CheckConstraint(
                condition=Q(delivery__in=Delivery.values), name="jobqueue_t_delivery"
            ),
            models.CheckConstraint(
                condition=Q(max_attempts__isnull=True) | Q(max_attempts__gt=0),
                name="jobqueue_t_max_attempts",
            ),
            models.CheckConstraint(
                condition=Q(max_attempts_override__isnull=True)
                | Q(max_attempts_override=NO_LIMIT)
                | Q(max_attempts_override__gt=0),
                name="jobqueue_t_max_attempts_override",
            ),
            models.CheckConstraint(
                condition=Q(concurrency__isnull=True) | Q(concurrency__gte=0),
                name="jobqueue_t_concurrency",
            ),
            models.CheckConstraint(
                condition=Q(concurrency_override__isnull=True)
                | Q(concurrency_override__gte=NO_LIMIT),
                name="jobqueue_t_concurrency_override",
            ),
            models.CheckConstraint(
                condition=is_rate("rate") & is_rate_override("rate_override"),
                name="jobqueue_t_rate",
            ),
            models.CheckConstraint(
                condition=Q(priority__range=(-100, 100))
                & (
                    Q(priority_override__isnull=True)
                    | Q(priority_override__range=(-100, 100))
                ),
                name="jobqueue_t_priority",
            ),
            models.CheckConstraint(
                condition=~Q(delivery=Delivery.AT_MOST_ONCE) | Q(max_attempts=1),
                name="jobqueue_t_at_most_once",
            ),
            models.CheckConstraint(
                condition=Q(max_crashes__gt=0), name="jobqueue_t_max_crashes"
            ),
            models.CheckConstraint(
                condition=is_readable("resume_at"), name="jobqueue_t_resume_at"
            ),
        ]

    def __str__(self) -> str:
        return self.name
