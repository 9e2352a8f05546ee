"""Buckets of rates: how much of a rate is used up."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.per_key import LIMIT_KEY_LENGTH
from django_jobqueue.domain.policy import READABLE
from django_jobqueue.models.column_defaults import ClockTimestamp
from django_jobqueue.models.fields import UTCDateTimeField


class Bucket(models.Model):
    """When the burst of a rate is there again as a whole. Each start moves it on; there
    is no row for one that has been full for some minutes.

    No index on the moment, so that an update of it touches none.
    """

    limit_key = models.CharField(
        _("key"), max_length=LIMIT_KEY_LENGTH, db_collation="C", primary_key=True
    )
    full_at = UTCDateTimeField(_("full at"))
    # By the clock that ``full_at`` was computed with, which may be set back since.
    changed_at = UTCDateTimeField(_("changed at"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("bucket of a rate")
        verbose_name_plural = _("buckets of rates")
        required_db_vendor = "postgresql"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(full_at__range=READABLE), name="jobqueue_b_full_at"
            ),
        ]

    def __str__(self) -> str:
        return self.limit_key
