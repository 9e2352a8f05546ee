"""Queued jobs that wait for a rate, and until when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Func, IntegerField, When

from django_jobqueue.conf import conf
from django_jobqueue.domain.rates import Rate, rate_in_force
from django_jobqueue.models import Bucket, JobType, KeyLimit, KeyOverride, QueuedJob
from django_jobqueue.text import timezones


class RateWait(NamedTuple):
    """The wait for the next permitted start."""

    rate: Rate
    until: datetime


class WaitingForRate:
    """The rates of the types and keys of some jobs, read in at most four queries."""

    def __init__(self, rows: Sequence[Any], types: Mapping[str, JobType]) -> None:
        self._now = timezones.now()
        self._of_types = {
            name: rate
            for name in {row.job_type_id for row in rows} & types.keys()
            if (rate := _rate_of(types[name])) is not None
        }
        self._of_limits = _of_limits(
            {
                types[row.job_type_id].limit_name
                for row in rows
                if row.limit_key is not None and row.job_type_id in types
            }
        )
        self._weight_rules = {
            name: row.weight_rule for name, row in types.items() if row.weight_rule
        }
        self._weights = _weights(
            row.pk for row in rows if row.job_type_id in self._weight_rules
        )
        self._limit_of = {name: row.limit_name for name, row in types.items()}
        keys = [row.limit_key for row in rows if row.limit_key]
        self._of_keys = _of_keys(keys)
        if not self._of_limits and not self._of_keys:
            keys = []
        self._full_at = _full_at({*self._of_types, *keys})

    def of_type(self, job: Any) -> RateWait | None:
        """The wait for the rate of its type, if none may start now."""
        name = job.job_type_id
        weight = self._weight(job, "of_type")
        return self._wait(name, self._of_types.get(name), weight)

    def of_key(self, job: Any) -> RateWait | None:
        """The wait for the rate of its key, if none may start now."""
        name = self._limit_of.get(job.job_type_id)
        rate = None if name is None else self._of_limits.get(name)
        if job.limit_key is None:
            return None
        rate = self._of_keys.get(job.limit_key, rate)
        return self._wait(job.limit_key, rate, self._weight(job, "of_key"))

    def _weight(self, job: Any, counted: str) -> int:
        """The job's weight in one of its rates."""
        rule = self._weight_rules.get(job.job_type_id)
        return self._weights.get(job.pk, 1) if rule and rule[counted] else 1

    def _wait(self, key: str, rate: Rate | None, weight: int) -> RateWait | None:
        full_at = self._full_at.get(key)
        if rate is None or full_at is None:
            return None
        wait = rate.wait(max(full_at - self._now, timedelta(0)), weight)
        return RateWait(rate, self._now + wait) if wait else None


def _rate_of(row: JobType | KeyLimit) -> Rate | None:
    return rate_in_force(row.rate, row.rate_override)


def _of_limits(names: Iterable[str | None]) -> dict[str, Rate]:
    """The rate of each key of these limits, where there is one."""
    wanted = [name for name in names if name is not None]
    if not wanted:
        return {}
    limits = KeyLimit.objects.using(conf.database).filter(pk__in=wanted)
    return {
        limit.name: rate for limit in limits if (rate := _rate_of(limit)) is not None
    }


def _of_keys(keys: Iterable[str]) -> dict[str, Rate | None]:
    """The rates of these keys that have one of their own."""
    wanted = list(keys)
    if not wanted:
        return {}
    overrides = KeyOverride.objects.using(conf.database)
    rates = overrides.filter(limit_key__in=wanted, rate__isnull=False)
    return {
        key: rate_in_force(None, rate)
        for key, rate in rates.values_list("limit_key", "rate")
    }


def _weights(jobs: Iterable[UUID]) -> dict[UUID, int]:
    """The weights of these jobs, as the claim computes them."""
    wanted = list(jobs)
    if not wanted:
        return {}
    of_data = Func(
        "job_type__weight_rule",
        "data",
        function="jobqueue_weight",
        output_field=IntegerField(),
    )
    own = Case(When(weight__gt=0, then="weight"), default=of_data)
    rows = QueuedJob.objects.using(conf.database).filter(pk__in=wanted)
    return dict(rows.values_list("pk", own))


def _full_at(keys: Iterable[str]) -> dict[str, datetime]:
    """When the buckets of these keys are full, where that is known."""
    wanted = list(keys)
    if not wanted:
        return {}
    buckets = Bucket.objects.using(conf.database).filter(pk__in=wanted)
    return {bucket.limit_key: bucket.full_at for bucket in buckets}
