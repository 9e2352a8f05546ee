"""Alerts: what operators are alerted to, and its deliveries."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.contrib.alerts.states import AlertEvent, AlertState
from django_jobqueue.domain.states import AlertCondition
from django_jobqueue.models.fields import ClockTimestamp, NewId, UTCDateTimeField


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
        help_text=_("When the condition last held."),
    )
    resolved_at = UTCDateTimeField(_("resolved at"), null=True, blank=True)
    pending = models.CharField(
        _("pending"),
        max_length=10,
        choices=AlertEvent.choices,
        db_default="",
        help_text=_("The news not yet handed to the channels."),
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
        help_text=_("When the channels last received that it fires."),
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


class AlertDelivery(models.Model):
    """Written in the transaction that decides to send, and deleted with its alert. So
    a process that is killed loses none; its successor repeats the number of the
    send, which shows receivers that it is the same."""

    alert = models.ForeignKey(Alert, models.CASCADE, verbose_name=_("alert"))
    event = models.CharField(_("event"), max_length=10, choices=AlertEvent.choices)
    channel = models.CharField(_("channel"), max_length=200)
    send_id = models.UUIDField(
        _("send id"),
        null=True,
        blank=True,
        help_text=_("The same for all alerts sent together, and in each attempt."),
    )
    planned_at = UTCDateTimeField(
        _("planned at"),
        null=True,
        blank=True,
        help_text=_("When it received its send id."),
    )
    attempts = models.IntegerField(_("attempts"), db_default=0)
    next_attempt_at = UTCDateTimeField(_("next attempt"), null=True, blank=True)
    sent_at = UTCDateTimeField(_("sent at"), null=True, blank=True)
    given_up_at = UTCDateTimeField(_("given up at"), null=True, blank=True)
    error = models.CharField(_("error"), max_length=200, db_default="")

    class Meta:
        verbose_name = _("delivery of an alert")
        verbose_name_plural = _("deliveries of alerts")
        required_db_vendor = "postgresql"
        default_permissions = ()
        indexes = [
            models.Index(
                fields=["channel", "id"],
                name="jobqueue_ad_unsent",
                condition=Q(sent_at=None, given_up_at=None),
            ),
            models.Index(fields=["channel", "planned_at"], name="jobqueue_ad_planned"),
        ]

    def __str__(self) -> str:
        return f"{self.event}: {self.channel}"
