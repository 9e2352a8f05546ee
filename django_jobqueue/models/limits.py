"""Limits by key, what operators say of them, and what they count."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from django_jobqueue.domain.per_key import LIMIT_KEY_LENGTH, MOST_SHARE
from django_jobqueue.domain.policy import NAME_LENGTH, NO_LIMIT
from django_jobqueue.domain.rates import LENGTH, NO_RATE, STORED
from django_jobqueue.models.fields import (
    ClockTimestamp,
    UTCDateTimeField,
    is_readable,
)


def is_rate(column: str) -> Q:
    """The column has a rate, or null."""
    return Q(**{f"{column}__isnull": True}) | Q(**{f"{column}__regex": STORED})


def is_rate_override(column: str) -> Q:
    """The column has what an operator says instead: a rate, unlimited, or null."""
    return (
        Q(**{f"{column}__isnull": True})
        | Q(**{column: NO_RATE})
        | Q(**{f"{column}__regex": STORED})
    )


class KeyLimit(models.Model):
    """A limit of each key, of one job type or of several that share it. Claims lock its
    row."""

    name = models.CharField(
        _("name"), max_length=NAME_LENGTH, db_collation="C", primary_key=True
    )
    concurrency = models.IntegerField(
        _("concurrency"),
        null=True,
        blank=True,
        help_text=_("Jobs of one key running at once. Empty: unlimited."),
    )
    rate = models.CharField(
        _("rate"),
        max_length=LENGTH,
        null=True,
        blank=True,
        help_text=_("How many jobs of one key start in any window. Empty: unlimited."),
    )
    strict = models.BooleanField(
        _("strict order"),
        db_default=False,
        help_text=_("A job that waits for a retry goes before its key's other jobs."),
    )
    declared_at = UTCDateTimeField(_("declared at"), db_default=ClockTimestamp())

    # What operators say instead.
    concurrency_override = models.IntegerField(
        _("concurrency"),
        null=True,
        blank=True,
        help_text=_("Jobs of one key running at once; 0 holds all, -1 is unlimited."),
    )

    rate_override = models.CharField(
        _("rate"),
        max_length=LENGTH,
        null=True,
        blank=True,
        help_text=_(
            "Starts of one key in any window, for example: 100/m, or 10/s burst 3, or "
            "unlimited."
        ),
    )

    class Meta:
        verbose_name = _("limit by key")
        verbose_name_plural = _("limits by key")
        required_db_vendor = "postgresql"
        ordering = ["name"]
        default_permissions = ("view", "change")
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="jobqueue_k_name"),
            models.CheckConstraint(
                condition=Q(concurrency__isnull=True) | Q(concurrency__gte=0),
                name="jobqueue_k_concurrency",
            ),
            models.CheckConstraint(
                condition=Q(concurrency_override__isnull=True)
                | Q(concurrency_override__gte=NO_LIMIT),
                name="jobqueue_k_concurrency_override",
            ),
            models.CheckConstraint(
                condition=is_rate("rate") & is_rate_override("rate_override"),
                name="jobqueue_k_rate",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class KeyOverride(models.Model):
    """An operator's numbers for one key instead of its limit's."""

    id = models.BigAutoField(primary_key=True)
    limit_key = models.CharField(
        _("key"), max_length=LIMIT_KEY_LENGTH, db_collation="C", unique=True
    )
    concurrency = models.IntegerField(
        _("concurrency"),
        null=True,
        blank=True,
        help_text=_(
            "Jobs of this key running at once; 0 holds it, -1 is unlimited. Empty: as "
            "of all keys."
        ),
    )
    rate = models.CharField(
        _("rate"),
        max_length=LENGTH,
        null=True,
        blank=True,
        help_text=_("Starts of this key in any window. Empty: as of all keys."),
    )
    share = models.SmallIntegerField(
        _("share"),
        null=True,
        blank=True,
        help_text=_("Jobs of this key in each round of the keys. Empty: 1."),
    )

    class Meta:
        verbose_name = _("override of a key")
        verbose_name_plural = _("overrides of keys")
        required_db_vendor = "postgresql"
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(concurrency__isnull=True) | Q(concurrency__gte=NO_LIMIT),
                name="jobqueue_ko_concurrency",
            ),
            models.CheckConstraint(
                condition=is_rate_override("rate"), name="jobqueue_ko_rate"
            ),
            models.CheckConstraint(
                condition=Q(share__isnull=True) | Q(share__range=(1, MOST_SHARE)),
                name="jobqueue_ko_share",
            ),
        ]

    def __str__(self) -> str:
        return self.limit_key


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
                condition=is_readable("full_at"), name="jobqueue_b_full_at"
            ),
        ]

    def __str__(self) -> str:
        return self.limit_key


class UniqueWindow(models.Model):
    """A unique key, from the enqueue of its job until a moment, or forever.

    A row changes only when a job is made, so its indexes cost duplicates nothing.
    """

    key = models.UUIDField(_("unique key"), primary_key=True)
    job_id = models.UUIDField(_("job"))  # queued, archived or pruned: no foreign key
    held_until = UTCDateTimeField(
        _("held until"), null=True, blank=True, help_text=_("Empty: forever.")
    )
    # By the clock that ``held_until`` was computed with, which may be set back since.
    opened_at = UTCDateTimeField(_("opened at"), db_default=ClockTimestamp())

    class Meta:
        verbose_name = _("unique window")
        verbose_name_plural = _("unique windows")
        required_db_vendor = "postgresql"
        default_permissions = ()
        indexes = [
            models.Index("job_id", name="jobqueue_w_job"),
            models.Index(
                "held_until",
                condition=models.Q(held_until__isnull=False),
                name="jobqueue_w_held_until",
            ),
        ]

    def __str__(self) -> str:
        return str(self.key)
