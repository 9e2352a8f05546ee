"""The history of schedules: each moment at which one fired, or should have."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.due_firings import FiringOutcome
from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import UTCDateTimeField


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
