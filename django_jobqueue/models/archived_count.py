"""Counts of jobs that others than workers archived, until they are in the totals."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.states import ArchivedStatus


class ArchivedCount(models.Model):
    """How many jobs one statement archived; the maintenance process adds it up.

    Rows are only inserted and deleted, so a cancellation in a long transaction keeps
    no worker from counting.
    """

    id = models.BigAutoField(primary_key=True)
    job_type = models.CharField(_("job type"), max_length=NAME_LENGTH)
    queue = models.CharField(_("queue"), max_length=NAME_LENGTH)
    status = models.CharField(
        _("status"), max_length=10, choices=ArchivedStatus.choices
    )
    jobs = models.IntegerField(_("jobs"))

    class Meta:
        verbose_name = _("count of archived jobs")
        verbose_name_plural = _("counts of archived jobs")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.job_type} {self.queue} {self.status}: {self.jobs}"
