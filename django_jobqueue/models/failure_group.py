"""Groups of failures with the same fingerprint."""

from __future__ import annotations

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import GroupState
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import JSONField, UTCDateTimeField

NEWEST = (F("last_seen").desc(), F("fingerprint").desc())


class FailureGroup(models.Model):
    """A failure that was seen, and what people decided about it.

    No count is kept here, so a fleet that fails does not queue up at one row: counts
    come from the index on the archive.
    """

    fingerprint = models.UUIDField(_("fingerprint"), primary_key=True)
    coarse = models.UUIDField(_("coarse fingerprint"), db_index=True)
    error_class = models.CharField(_("error class"), max_length=200)
    frame = models.CharField(_("frame"), max_length=300)
    template = models.TextField(_("message"), db_default="")
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=GroupState.choices,
        db_default=GroupState.OPEN,
    )
    first_seen = UTCDateTimeField(_("first seen"), db_default=ClockTimestamp())
    last_seen = UTCDateTimeField(
        _("last seen"),
        db_default=ClockTimestamp(),
        help_text=_(
            "When a worker last recorded such a failure; accurate to some ten seconds."
        ),
    )
    resolved_at = UTCDateTimeField(_("resolved at"), null=True, blank=True)
    resolved_in = models.CharField(
        _("resolved in release"), max_length=100, db_default=""
    )
    excused = JSONField(
        _("excused releases"),
        db_default=[],
        help_text=_("Releases whose failures do not reopen it."),
    )
    regressed_at = UTCDateTimeField(_("regressed at"), null=True, blank=True)
    ignored_until = UTCDateTimeField(_("ignored until"), null=True, blank=True)
    assignee = models.TextField(_("assignee"), db_default="", blank=True)
    notes = models.TextField(_("notes"), db_default="", blank=True)
    changed_at = UTCDateTimeField(_("changed at"), null=True, blank=True)
    changed_by = models.TextField(_("changed by"), db_default="")

    class Meta:
        verbose_name = _("failure group")
        verbose_name_plural = _("failure groups")
        required_db_vendor = "postgresql"
        default_permissions = ("view", "change")
        indexes = [
            models.Index(*NEWEST, name="jobqueue_g_newest"),
            models.Index(F("state"), *NEWEST, name="jobqueue_g_state"),
        ]

    def __str__(self) -> str:
        return f"{self.error_class} in {self.frame}"
