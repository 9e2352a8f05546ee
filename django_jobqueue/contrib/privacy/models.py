"""Erasures of personal data: each is a search for a value through all tables, and what
was done to the rows that hold it."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.contrib.privacy.personal_value import LONGEST_KEY, ErasureAct
from django_jobqueue.domain.states import WorkState
from django_jobqueue.models.chunked_work import ChunkedWork
from django_jobqueue.models.fields import JSONField

OVER = (WorkState.DONE, WorkState.STOPPED)


class Erasure(ChunkedWork):
    """A draft counts the rows. One that ended keeps the counts, and not the value."""

    act = models.CharField(
        _("act"), max_length=10, choices=ErasureAct.choices, db_default="", blank=True
    )
    value = models.TextField(
        _("value"), db_default="", help_text=_("Cleared when the erasure ends.")
    )
    key = models.CharField(
        _("key"),
        max_length=LONGEST_KEY,
        db_default="",
        help_text=_("Only values under this key of data. Empty: everywhere."),
    )
    fingerprint = models.CharField(
        _("fingerprint"),
        max_length=64,
        help_text=_("Keyed hash of the value. The key is SECRET_KEY."),
    )
    reason = models.TextField(_("reason"), db_default="", blank=True)

    counted = JSONField(
        _("counted"),
        db_default={},
        help_text=_("Rows that contain the value, by table, with the first ones."),
    )
    total = models.BigIntegerField(
        _("total"),
        null=True,
        help_text=_("Number of rows that contain the value. Empty: not all counted."),
    )
    examined = models.BigIntegerField(_("examined"), db_default=0)
    changed = JSONField(_("changed"), db_default={})  # table to number
    remaining = JSONField(
        _("remaining"),
        db_default={},
        help_text=_("Rows that the last pass could not change, by reason."),
    )
    passes = models.IntegerField(
        _("passes"), db_default=0, help_text=_("Complete passes through all tables.")
    )
    position = JSONField(_("position"), null=True, blank=True)

    class Meta(ChunkedWork.Meta):
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")
        permissions = [("erase_personal_data", "Can find and erase personal data")]
        constraints = [
            models.CheckConstraint(
                condition=Q(value="") | ~Q(state__in=OVER), name="jobqueue_e_cleared"
            ),
        ]
        indexes = [
            models.Index(
                F("created_at").desc(), F("id").desc(), name="jobqueue_e_newest"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_act_display()} {self.pk}".strip()
