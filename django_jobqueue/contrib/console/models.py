"""Saved views, and searches through all jobs that workers carry on."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.chunked_work import ChunkedWork
from django_jobqueue.models.fields import ClockTimestamp, JSONField, UTCDateTimeField

LONGEST_NAME: Final = 60  # characters
LONGEST_QUERY: Final = 2_000


class SavedView(models.Model):
    """The query string of a list, for its owner, or for all who may see the list."""

    id = models.BigAutoField(primary_key=True)
    list = models.CharField(_("list"), max_length=20)
    name = models.CharField(_("name"), max_length=LONGEST_NAME)
    query = models.CharField(_("query"), max_length=LONGEST_QUERY)
    owner = models.TextField(_("owner"))
    is_shared = models.BooleanField(_("shared"), db_default=False)
    created_at = UTCDateTimeField(_("created"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        required_db_vendor = "postgresql"
        default_permissions = ("add",)
        permissions = [
            ("share_savedview", "Can share saved views, and change shared ones"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "list", "name"], name="jobqueue_v_name"
            ),
        ]
        indexes = [
            models.Index(
                fields=["list"], condition=Q(is_shared=True), name="jobqueue_v_shared"
            ),
        ]

    def __str__(self) -> str:
        return self.name


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
