"""Bulk operations: one verb on all jobs of a selection, done by workers in chunks."""

from __future__ import annotations

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import BulkKind
from django_jobqueue.models.chunked_work import ChunkedWork
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField


class BulkOperation(ChunkedWork):
    """A verb, the jobs that it is done to, and its progress."""

    kind = models.CharField(_("kind"), max_length=20, choices=BulkKind.choices)
    # Of ``django_jobqueue.search.selection``; jobs after the cutoff are not included.
    selection = JSONField(_("selection"))
    cutoff = UTCDateTimeField(_("frozen at"), db_default=ClockTimestamp())
    options = JSONField(_("options"), db_default={})
    reason = models.TextField(_("reason"), db_default="", blank=True)
    per_minute = models.IntegerField(
        _("jobs per minute"),
        null=True,
        blank=True,
        help_text=_("Empty: no limit."),
    )

    total = models.BigIntegerField(
        _("total"),
        null=True,
        help_text=_("Number of matching jobs when the operation began."),
    )
    horizon = models.CharField(
        _("horizon"),
        max_length=20,
        db_default="",
        help_text=_(
            "The oldest transaction that was open when the selection was frozen."
        ),
    )
    counted = JSONField(
        _("counted"),
        null=True,
        help_text=_("Facts about the jobs counted so far."),
    )
    confirmed = models.BigIntegerField(
        _("confirmed"),
        null=True,
        help_text=_("The operation changes no more jobs than this."),
    )
    seen = models.BigIntegerField(_("seen"), db_default=0)
    changed = models.BigIntegerField(_("changed"), db_default=0)
    skipped = JSONField(_("skipped"), db_default={})  # reason to number
    cursor = JSONField(_("cursor"), null=True, blank=True)

    class Meta(ChunkedWork.Meta):
        verbose_name = _("bulk operation")
        verbose_name_plural = _("bulk operations")
        permissions = [
            ("start_bulkoperation", "Can start and stop bulk operations"),
            ("unbounded_bulkoperation", "Can start bulk operations on most jobs"),
        ]
        indexes = [
            models.Index(
                F("created_at").desc(), F("id").desc(), name="jobqueue_b_newest"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.pk}"
