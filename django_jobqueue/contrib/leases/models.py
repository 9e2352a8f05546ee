"""Leases by name: who holds each, and until when."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.lease_names import NAME_LENGTH
from django_jobqueue.models.fields import ClockTimestamp, UTCDateTimeField


class Lease(models.Model):
    """A name that one process at a time holds. The row outlives its holders, so that
    the fence never shrinks."""

    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, primary_key=True, db_collation="C"
    )
    fence = models.BigIntegerField(
        _("fence"),
        db_default=1,
        help_text=_("Grows whenever the lease is taken, or taken away."),
    )
    token = models.UUIDField(_("token"), null=True, blank=True)  # null: it is free
    holder = models.CharField(_("holder"), max_length=200, db_default="")  # host:pid
    host = models.CharField(_("host"), max_length=200, db_default="")
    taken_at = UTCDateTimeField(_("taken at"), db_default=ClockTimestamp())
    renewed_at = UTCDateTimeField(_("renewed at"), db_default=ClockTimestamp())
    lease_until = UTCDateTimeField(_("lease until"), db_default=ClockTimestamp())
    awaited = models.BooleanField(
        _("awaited"),
        db_default=False,
        help_text=_("Somebody waits to be notified when the lease is free."),
    )

    class Meta:
        verbose_name = _("lease")
        verbose_name_plural = _("leases")
        required_db_vendor = "postgresql"
        default_permissions = ("view",)
        permissions = [("take_away_lease", "Can take leases away")]

    def __str__(self) -> str:
        return self.name
