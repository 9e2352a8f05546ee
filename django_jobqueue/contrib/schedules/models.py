"""Schedules, and the history of their firings."""

from __future__ import annotations

from datetime import timedelta

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.contrib.schedules.due_firings import FiringOutcome, Origin
from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.schedules import Missed, Overlap
from django_jobqueue.models.fields import (
    ClockTimestamp,
    JSONField,
    UTCDateTimeField,
    is_readable,
)
from django_jobqueue.models.job_type import JobType


class Schedule(models.Model):
    """A rule with a job type and data; an empty override means the code's value."""

    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, db_collation="C", primary_key=True
    )
    job_type = models.ForeignKey(
        JobType,
        models.DO_NOTHING,
        db_column="job_type",
        related_name="+",
        verbose_name=_("job type"),
    )
    origin = models.CharField(
        _("origin"), max_length=5, choices=Origin.choices, db_default=Origin.ADMIN
    )

    # What the code says, refreshed by every runworkers; for those that it does not
    # declare, what operators say.
    rule = models.CharField(
        _("rule"),
        max_length=200,
        help_text=_("“cron 30 2 * * *”, or “every 300” for each five minutes."),
    )
    time_zone = models.CharField(_("time zone"), max_length=64)
    data = JSONField(_("data"), db_default={}, blank=True)
    options = JSONField(
        _("options"), db_default={}, blank=True, help_text=_("Of its jobs.")
    )
    missed = models.CharField(
        _("missed firings"),
        max_length=4,
        choices=Missed.choices,
        db_default=Missed.ONCE,
    )
    missed_within = models.DurationField(
        _("missed within"),
        db_default=timedelta(days=1),
        help_text=_("Firings missed longer ago are dropped."),
    )
    missed_most = models.SmallIntegerField(
        _("most missed"),
        db_default=100,
        help_text=_("The most jobs enqueued at once."),
    )
    overlap = models.CharField(
        _("overlap"), max_length=5, choices=Overlap.choices, db_default=Overlap.ALLOW
    )
    jitter = models.DurationField(
        _("jitter"),
        null=True,
        blank=True,
        help_text=_("Jobs are due up to this much later than their moment."),
    )
    starts_at = UTCDateTimeField(_("starts at"), null=True, blank=True)
    ends_at = UTCDateTimeField(_("ends at"), null=True, blank=True)
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())
    declared_at = UTCDateTimeField(_("declared at"), null=True, blank=True)
    gone_at = UTCDateTimeField(
        _("gone at"),
        null=True,
        blank=True,
        help_text=_("Since when no code declares it. It does not fire."),
    )

    # What operators say instead.
    rule_override = models.CharField(_("rule"), max_length=200, null=True, blank=True)
    time_zone_override = models.CharField(
        _("time zone"), max_length=64, null=True, blank=True
    )
    data_override = JSONField(_("data"), null=True, blank=True)
    paused = models.BooleanField(_("paused"), db_default=False)
    paused_at = UTCDateTimeField(_("paused at"), null=True, blank=True)
    paused_by = models.TextField(_("paused by"), db_default="")
    paused_reason = models.TextField(_("reason"), db_default="", blank=True)

    # Written by whoever plans and fires.
    next_at = UTCDateTimeField(_("next firing"), null=True, blank=True)
    planned_for = models.TextField(db_default="", editable=False)
    fired_at = UTCDateTimeField(_("last firing"), null=True, blank=True)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        required_db_vendor = "postgresql"
        ordering = ["name"]
        default_permissions = ("view", "add", "change", "delete")
        permissions = [
            ("pause_schedule", "Can pause and resume schedules"),
            ("run_schedule", "Can run schedules now"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~Q(name="") & ~Q(rule=""), name="jobqueue_s_named"
            ),
            models.CheckConstraint(
                condition=Q(origin__in=Origin.values)
                & Q(missed__in=Missed.values)
                & Q(overlap__in=Overlap.values),
                name="jobqueue_s_words",
            ),
            models.CheckConstraint(
                condition=Q(missed_most__gt=0), name="jobqueue_s_missed_most"
            ),
            models.CheckConstraint(
                condition=is_readable("starts_at", "ends_at", "next_at"),
                name="jobqueue_s_moments",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rule_in_force(self) -> str:
        """The rule by which it fires."""
        return self.rule_override or self.rule

    @property
    def time_zone_in_force(self) -> str:
        """The time zone of its rule."""
        return self.time_zone_override or self.time_zone

    @property
    def data_in_force(self) -> object:
        """The data of its jobs."""
        return self.data if self.data_override is None else self.data_override


class Firing(models.Model):
    """A schedule fires at most once at a moment: that is the primary key."""

    pk = models.CompositePrimaryKey("schedule", "fires_at")
    schedule = models.CharField(  # no foreign key: it outlives its schedule
        _("schedule"), max_length=NAME_LENGTH, db_collation="C"
    )
    fires_at = UTCDateTimeField(_("moment"))
    job_id = models.UUIDField(_("job"), null=True)  # queued, archived or pruned
    outcome = models.CharField(
        _("outcome"), max_length=8, choices=FiringOutcome.choices
    )
    number = models.IntegerField(_("number"), db_default=1)  # of firings, if missed
    by = models.TextField(_("by"), db_default="")
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("firing")
        verbose_name_plural = _("firings")
        required_db_vendor = "postgresql"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(outcome__in=FiringOutcome.values),
                name="jobqueue_firing_outcome",
            )
        ]
        indexes = [
            models.Index(fields=["created_at"], name="jobqueue_firing_made"),
            models.Index(fields=["job_id"], name="jobqueue_firing_job"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule} {self.fires_at}"
