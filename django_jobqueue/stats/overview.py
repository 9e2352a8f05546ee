"""Reads everything that the overview of the job queue shows, in a few statements.

Present figures come from capped counts, past ones from the roll-ups; none from the
archive.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q
from django.db.models.functions import Coalesce

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.domain.states import BulkState, GroupState
from django_jobqueue.models import BulkOperation, FailureGroup, JobType
from django_jobqueue.stats import current_state as present
from django_jobqueue.stats import schedules
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.schedules import ScheduleNow
from django_jobqueue.stats.time_window import HOUR, Window
from django_jobqueue.stats.unclaimed_jobs import claimers
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import history
from django_jobqueue.store.reading.history import Finished, ReleaseSpan, Span
from django_jobqueue.store.reading.stats import Recent

FRESH: Final = 3.0  # seconds
LATELY: Final = timedelta(days=1)
MOST_GROUPS: Final = 20
MOST_OPERATIONS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The present state, and the problems of the last hour or day."""

    present: Present
    limits: dict[str, int | None]  # of every job type; None is no limit
    groups: list[FailureGroup]  # new or regressed lately, latest first
    operations: list[BulkOperation]  # newest first
    hour: list[Finished]
    unfolded: datetime | None
    schedules: list[ScheduleNow]  # by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The jobs that finished in a window, up to when it was read."""

    start: datetime
    end: datetime
    recent: list[Recent]
    spans: list[Span]
    trends: list[Finished]
    releases: list[ReleaseSpan]  # the newest first


@dataclass(frozen=True, slots=True)
class Overview:
    """The job queue, now and in a window."""

    window: Window
    now: Now
    past: Past


_now: CachedValue[Now] = CachedValue()
_past: CachedValue[Past] = CachedValue()


def read(window: Window) -> Overview:
    """Read it, or what was read a moment ago. Times may be of different moments."""
    now = _now.get(conf.database, FRESH, _read_now)
    past = _past.get(
        f"{conf.database} {window.name}", window.fresh, lambda: _read_past(window)
    )
    return Overview(window, now, past)


def forget() -> None:
    """Let the next reading be a new one."""
    _now.forget()
    _past.forget()


def _read_now() -> Now:
    db = DjangoDatabase()
    current = present.read()
    start = HOUR.start(current.time)
    unfolded = history.unfolded(db)
    return Now(
        present=current,
        limits=_limits(),
        groups=_groups(current.time - LATELY),
        operations=_operations(),
        hour=history.trends(db, start, HOUR.length),
        unfolded=unfolded,
        schedules=schedules.read(claimers(current), current.time),
    )


def _read_past(window: Window) -> Past:
    db = DjangoDatabase()
    end = database_now()
    start = window.start(end)
    return Past(
        start=start,
        end=end,
        recent=history.since(db, start),
        spans=history.spans(db, start, window.step),
        trends=history.trends(db, start, window.trend_step),
        releases=history.releases(db, start - LATELY),
    )


def _limits() -> dict[str, int | None]:
    rows = JobType.objects.using(conf.database).annotate(
        limit=Coalesce("concurrency_override", "concurrency")
    )
    return {
        name: None if limit == NO_LIMIT else limit
        for name, limit in rows.values_list("name", "limit")
    }


def _groups(since: datetime) -> list[FailureGroup]:
    rows = FailureGroup.objects.using(conf.database).filter(
        Q(first_seen__gte=since) | Q(regressed_at__gte=since),
        state=GroupState.OPEN,
        last_seen__gte=since,
    )
    return list(
        rows.only(
            "error_class", "frame", "first_seen", "last_seen", "regressed_at"
        ).order_by("-last_seen", "-fingerprint")[:MOST_GROUPS]
    )


def _operations() -> list[BulkOperation]:
    rows = BulkOperation.objects.using(conf.database).exclude(state=BulkState.DRAFT)
    return list(
        rows.only(
            *("kind", "state", "total", "seen", "changed", "created_by", "created_at"),
            *("started_at", "finished_at", "error"),
        ).order_by("-created_at", "-id")[:MOST_OPERATIONS]
    )
