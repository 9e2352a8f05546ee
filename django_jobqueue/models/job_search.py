"""Searches through all jobs that workers carry on in the background."""

from __future__ import annotations

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.chunked_work import ChunkedWork
from django_jobqueue.models.fields import JSONField, UTCDateTimeField


class JobSearch(ChunkedWork):
    """A search, its place, and what it has found; deleted after some days."""

    query = models.TextField(_("search"))  # as it was typed
    # By table; each of ``django_jobqueue.search.selection``.
    selections = JSONField(_("selections"))
    place = JSONField(
        _("place"),
        null=True,
        blank=True,
        help_text=_("The table, and the key of the last job examined there."),
    )
    oldest = UTCDateTimeField(
        _("oldest"),
        null=True,
        blank=True,
        help_text=_("When the oldest archived job finished, as the search began."),
    )
    examined = models.BigIntegerField(_("examined"), db_default=0)
    matched = JSONField(_("found"), db_default={})  # table to number
    newest = JSONField(
        _("newest"),
        db_default={},
        help_text=_("Ids of the newest jobs found, by table, at most 1,000 of each."),
    )

    class Meta(ChunkedWork.Meta):
        verbose_name = _("search")
        verbose_name_plural = _("searches")
        permissions = [
            ("start_jobsearch", "Can start and stop searches through all jobs")
        ]
        indexes = [
            models.Index(
                F("created_at").desc(), F("id").desc(), name="jobqueue_js_newest"
            ),
        ]

    def __str__(self) -> str:
        return str(self.pk)
