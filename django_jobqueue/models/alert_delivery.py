"""Deliveries of alerts: the news about an alert on its way to one channel."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import AlertEvent
from django_jobqueue.models.alert import Alert
from django_jobqueue.models.fields import UTCDateTimeField


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
        help_text=_("The same for all that is sent together, and in each attempt."),
    )
    planned_at = UTCDateTimeField(
        _("planned at"),
        null=True,
        blank=True,
        help_text=_("When it got its send id."),
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
