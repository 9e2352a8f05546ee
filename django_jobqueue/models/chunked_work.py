"""Columns of work that is done in chunks: of bulk operations, erasures and searches."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.states import WorkState
from django_jobqueue.models.fields import ClockTimestamp, NewId, UTCDateTimeField


class ChunkedWork(models.Model):
    """A piece of work, its job, and its progress.

    The effect of a chunk and the new place are one transaction, so that each thing is
    done once, whatever dies meanwhile.
    """

    id = models.UUIDField(_("id"), primary_key=True, db_default=NewId(), editable=False)
    state = models.CharField(
        _("state"),
        max_length=10,
        choices=WorkState.choices,
        db_default=WorkState.DRAFT,
    )
    error = models.TextField(_("error"), db_default="", blank=True)
    created_by = models.TextField(_("created by"), db_default="")
    created_at = UTCDateTimeField(_("created at"), db_default=ClockTimestamp())
    started_at = UTCDateTimeField(_("started at"), null=True, blank=True)
    progress_at = UTCDateTimeField(_("last progress"), null=True, blank=True)
    finished_at = UTCDateTimeField(_("finished at"), null=True, blank=True)
    job_id = models.UUIDField(
        _("job"),
        null=True,
        blank=True,
        help_text=_("The job that does the work. Empty if a command does it."),
    )

    class Meta:
        abstract = True
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
