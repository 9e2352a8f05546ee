"""The common base of queued and archived jobs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.per_key import LIMIT_KEY_LENGTH
from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.models.fields import (
    ClockTimestamp,
    JSONField,
    NewId,
    UTCDateTimeField,
)


class AbstractJob(models.Model):
    """One thing to be done."""

    id = models.UUIDField(_("id"), primary_key=True, db_default=NewId(), editable=False)
    queue = models.CharField(
        _("queue"), max_length=NAME_LENGTH, db_collation="C", db_default="default"
    )
    priority = models.SmallIntegerField(
        _("priority"), db_default=0, help_text=_("-100 to 100; higher runs first.")
    )
    data = JSONField(
        _("data"), db_default={}, help_text=_("The arguments of the handler.")
    )
    run_after = UTCDateTimeField(_("run after"), db_default=ClockTimestamp())
    expires_at = UTCDateTimeField(_("expires at"), null=True, blank=True)
    expires_in = models.DurationField(
        _("expires in"),
        null=True,
        blank=True,
        help_text=_("From when the job was first due until it expires."),
    )
    created_at = UTCDateTimeField(
        _("created at"), db_default=ClockTimestamp(), editable=False
    )
    attempts = models.IntegerField(_("attempts"), db_default=0)
    max_attempts = models.IntegerField(
        _("max attempts"),
        null=True,
        blank=True,
        help_text=_("Empty: the limit of the job type."),
    )
    timeout = models.DurationField(
        _("timeout"),
        null=True,
        blank=True,
        help_text=_("Empty: the limit of the job type."),
    )
    backoff = JSONField(
        _("backoff"),
        null=True,
        blank=True,
        help_text=_("Waits between attempts. Empty: those of the job type."),
    )
    crashes = models.IntegerField(
        _("crashes"),
        db_default=0,
        help_text=_("Attempts that ended because their worker died."),
    )
    started_at = UTCDateTimeField(_("started at"), null=True, blank=True)
    limit_key = models.CharField(
        _("limit key"),
        max_length=LIMIT_KEY_LENGTH,
        db_collation="C",
        null=True,
        blank=True,
        help_text=_("The limit and the key that the job counts against."),
    )
    weight = models.IntegerField(
        _("weight"),
        null=True,
        blank=True,
        help_text=_("The job's weight in weighted rates. Empty: from its data."),
    )
    replay_of = models.UUIDField(
        _("replay of"),
        null=True,
        blank=True,
        help_text=_("The archived job that this one repeats."),
    )
    root_id = models.UUIDField(
        _("root"),
        null=True,
        blank=True,
        help_text=_("The first job in a chain of replays."),
    )
    bulk_operation_id = models.UUIDField(_("bulk operation"), null=True, blank=True)
    enqueued_by = models.TextField(_("enqueued by"), null=True, blank=True)
    tags = JSONField(_("tags"), null=True, blank=True)
    metadata = JSONField(
        _("metadata"),
        null=True,
        blank=True,
        help_text=_("Stored with the job in addition to its data."),
    )
    followers = JSONField(
        _("followers"),
        null=True,
        blank=True,
        help_text=_("Jobs to enqueue when this one finishes, by its outcome."),
    )
    follows = models.UUIDField(
        _("follows"),
        null=True,
        blank=True,
        help_text=_("The archived job whose end enqueued this one."),
    )

    class Meta:
        abstract = True
        required_db_vendor = "postgresql"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.job_type_id} {self.pk}"  # type: ignore[attr-defined]
