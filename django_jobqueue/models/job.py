"""The common base of queued and archived jobs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH, WHO_LENGTH
from django_jobqueue.models.fields import UTCDateTimeField
from django_jobqueue.models.functions import ClockTimestamp, NewId


class AbstractJob(models.Model):
    """One thing to be done."""

    id = models.UUIDField(_("id"), primary_key=True, db_default=NewId(), editable=False)
    queue = models.CharField(
        _("queue"), max_length=NAME_LENGTH, db_collation="C", db_default="default"
    )
    priority = models.SmallIntegerField(
        _("priority"), db_default=0, help_text=_("-100 to 100; greater is sooner.")
    )
    data = models.JSONField(
        _("data"), db_default={}, help_text=_("What the handler is called with.")
    )
    run_after = UTCDateTimeField(_("run after"), db_default=ClockTimestamp())
    expires_at = UTCDateTimeField(_("expires at"), null=True, blank=True)
    created_at = UTCDateTimeField(
        _("created at"), db_default=ClockTimestamp(), editable=False
    )
    attempts = models.IntegerField(_("attempts"), db_default=0)
    max_attempts = models.IntegerField(
        _("max attempts"),
        null=True,
        blank=True,
        help_text=_("Empty: what the job type says."),
    )
    crashes = models.IntegerField(
        _("crashes"),
        db_default=0,
        help_text=_("Attempts that ended because their worker died."),
    )
    started_at = UTCDateTimeField(_("started at"), null=True, blank=True)
    replay_of = models.UUIDField(
        _("replay of"),
        null=True,
        blank=True,
        help_text=_("The archived job that this one repeats."),
    )
    root_id = models.UUIDField(
        _("root"), null=True, blank=True, help_text=_("The first of a line of replays.")
    )
    bulk_operation_id = models.UUIDField(_("bulk operation"), null=True, blank=True)
    enqueued_by = models.CharField(
        _("enqueued by"), max_length=WHO_LENGTH, null=True, blank=True
    )
    tags = models.JSONField(_("tags"), null=True, blank=True)
    metadata = models.JSONField(
        _("metadata"),
        null=True,
        blank=True,
        help_text=_("What travels with the job beside its data."),
    )
    on_complete = models.CharField(
        _("on complete"),
        max_length=NAME_LENGTH,
        db_collation="C",
        null=True,
        blank=True,
        help_text=_("Job type of the job that is enqueued when this one is over."),
    )

    class Meta:
        abstract = True
        required_db_vendor = "postgresql"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.job_type_id} {self.pk}"  # type: ignore[attr-defined]
