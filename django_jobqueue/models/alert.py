"""Alerts: what operators were, or are, alerted to."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import AlertCondition, AlertEvent, AlertState
from django_jobqueue.models.column_defaults import ClockTimestamp, NewId
from django_jobqueue.models.fields import UTCDateTimeField


class Alert(models.Model):
    """A failure group that is new or back, or a condition from its start to its end.

    The statement that records a failure group makes its alert, in the same transaction,
    so however many workers meet it, there is one.
    """

    id = models.UUIDField(_("id"), primary_key=True, db_default=NewId(), editable=False)
    condition = models.CharField(
        _("condition"), max_length=20, choices=AlertCondition.choices
    )
    subject = models.CharField(
        _("subject"),
        max_length=250,
        db_default="",
        help_text=_("The queue, job type or failure group concerned."),
    )
    text = models.TextField(_("text"), db_default="")
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=AlertState.choices,
        db_default=AlertState.FIRING,
    )
    fired_at = UTCDateTimeField(_("fired at"), db_default=ClockTimestamp())
    last_seen = UTCDateTimeField(
        _("last seen"),
        null=True,
        blank=True,
        help_text=_("When the condition held at last."),
    )
    resolved_at = UTCDateTimeField(_("resolved at"), null=True, blank=True)
    pending = models.CharField(
        _("pending"),
        max_length=10,
        choices=AlertEvent.choices,
        db_default="",
        help_text=_("The news that is not handed to the channels yet."),
    )
    announced = models.CharField(
        _("announced"),
        max_length=10,
        choices=AlertEvent.choices,
        db_default="",
        help_text=_("The last news that was handed to the channels."),
    )
    announced_at = UTCDateTimeField(
        _("announced at"),
        null=True,
        blank=True,
        help_text=_("When the channels were last given that it fires."),
    )

    class Meta:
        verbose_name = _("alert")
        verbose_name_plural = _("alerts")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        indexes = [
            models.Index(
                F("fired_at").desc(), F("id").desc(), name="jobqueue_al_newest"
            ),
            models.Index("id", name="jobqueue_al_pending", condition=~Q(pending="")),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["condition", "subject"],
                condition=Q(state=AlertState.FIRING),
                name="jobqueue_al_firing",
            )
        ]

    def __str__(self) -> str:
        return self.text or f"{self.condition} {self.subject}"
