"""Queued jobs that wait for their key: for its limit, or for a job that goes first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db.models import Count

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import limit_in_force
from django_jobqueue.domain.states import QueuedStatus
from django_jobqueue.models import JobType, KeyLimit, KeyOverride, QueuedJob


class WaitingForKey:
    """The limits by key of some jobs, and what runs and waits of their keys, read in at
    most four queries."""

    def __init__(self, rows: Sequence[Any], types: Mapping[str, JobType]) -> None:
        self._name_of = {
            row.pk: name
            for row in rows
            if row.limit_key is not None
            and row.job_type_id in types
            and (name := types[row.job_type_id].limit_name)
        }
        keys = {row.limit_key for row in rows if row.pk in self._name_of}
        self._limits = _limits(set(self._name_of.values()))
        self._overrides = _overrides(keys)
        self._running = running_by("limit_key", keys)
        self._first = _first(
            {
                row.limit_key
                for row in rows
                if row.pk in self._name_of and self._is_strict(row)
            }
        )

    def limit_of(self, job: Any) -> int | None:
        """How many jobs of its key run at once; None is unlimited."""
        limit = self._limits.get(self._name_of.get(job.pk, ""))
        if limit is None:
            return None
        of_all = limit_in_force(limit.concurrency, limit.concurrency_override)
        return limit_in_force(of_all, self._overrides.get(job.limit_key))

    def running_of(self, job: Any) -> int:
        """How many jobs of its key run."""
        return self._running.get(job.limit_key, 0)

    def first_of(self, job: Any) -> QueuedJob | None:
        """The job that goes before it, since it was started before and the order of
        their key is strict."""
        first = self._first.get(job.limit_key) if job.pk in self._name_of else None
        return None if first is None or first.pk == job.pk else first

    def _is_strict(self, job: Any) -> bool:
        limit = self._limits.get(self._name_of[job.pk])
        return limit is not None and limit.strict


def _limits(names: Collection[str]) -> dict[str, KeyLimit]:
    if not names:
        return {}
    return KeyLimit.objects.using(conf.database).in_bulk(names)


def _overrides(keys: Collection[str]) -> dict[str, int | None]:
    if not keys:
        return {}
    of_one = KeyOverride.objects.using(conf.database).filter(limit_key__in=keys)
    return dict(of_one.values_list("limit_key", "concurrency"))


def running_by(column: str, values: Collection[str]) -> dict[str, int]:
    """How many jobs run that have one of these values in this column, by the value."""
    if not values:
        return {}
    jobs = QueuedJob.objects.using(conf.database).filter(
        status=QueuedStatus.RUNNING, **{f"{column}__in": values}
    )
    counted = jobs.order_by().values_list(column).annotate(Count("pk"))
    return {str(value): count for value, count in counted}


def _first(keys: Collection[str]) -> dict[str, QueuedJob]:
    """The job of each of these keys that was started before."""
    if not keys:
        return {}
    queued = QueuedJob.objects.using(conf.database).filter(
        status=QueuedStatus.QUEUED, limit_key__in=keys
    )
    started = queued.exclude(fence=0).order_by("limit_key", "run_after", "pk")
    first = started.distinct("limit_key").only("limit_key", "run_after")
    return {str(job.limit_key): job for job in first}
