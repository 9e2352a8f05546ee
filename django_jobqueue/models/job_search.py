"""Searches through all jobs that workers carry on in the background."""

from __future__ import annotations

from django.db import models
from django.db.models import F
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import SearchState
from django_jobqueue.models.column_defaults import ClockTimestamp, NewId
from django_jobqueue.models.fields import JSONField, UTCDateTimeField


class JobSearch(models.Model):
    """A search, its place, and what it has found; deleted after some days.

    What a chunk found and the new place are one transaction, so that each job is
    examined once, whatever dies meanwhile.
    """

    id = models.UUIDField(_("id"), primary_key=True, db_default=NewId(), editable=False)
    query = models.TextField(_("search"))  # as it was typed
    # By table; each of ``django_jobqueue.search.selection``.
    selections = JSONField(_("selections"))
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=SearchState.choices,
        db_default=SearchState.QUEUED,
    )
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
    error = models.TextField(_("error"), db_default="", blank=True)

    created_by = models.TextField(_("created by"), db_default="")
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())
    progress_at = UTCDateTimeField(_("last progress"), null=True, blank=True)
    finished_at = UTCDateTimeField(_("finished at"), null=True, blank=True)
    job_id = models.UUIDField(
        _("job"), null=True, blank=True, help_text=_("The job that runs this search.")
    )

    class Meta:
        verbose_name = _("search")
        verbose_name_plural = _("searches")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
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
