"""Figures of the cluster, computed by whoever finds them too old."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import UTCDateTimeField


class Figures(models.Model):
    """What one computation found. The table is unlogged: after a crash of the server it
    is empty, and the next reader computes."""

    name = models.CharField(_("name"), max_length=20, primary_key=True)
    taken_at = UTCDateTimeField(_("taken at"), db_default=ClockTimestamp())
    figures = models.JSONField(_("figures"), null=True, blank=True)

    class Meta:
        verbose_name = _("figures")
        verbose_name_plural = _("figures")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
