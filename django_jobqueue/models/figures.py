"""Figures of the cluster for metrics, which all who ask share for some seconds."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.models.fields import JSONField, UTCDateTimeField


class Figures(models.Model):
    """What was read last. A hot standby serves what its primary has read."""

    name = models.CharField(_("name"), max_length=100, primary_key=True)
    taken_at = UTCDateTimeField(_("as of"))
    figures = JSONField(_("figures"))

    class Meta:
        verbose_name = _("figures")
        verbose_name_plural = _("figures")
        required_db_vendor = "postgresql"
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
