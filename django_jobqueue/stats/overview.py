"""Reads everything that the overview of the job queue shows, in a few statements.

Present figures come from capped counts, past ones from the roll-ups; none from the
archive.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import Q
from django.db.models.functions import Coalesce

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import NO_LIMIT
from django_jobqueue.domain.states import GroupState, WorkState
from django_jobqueue.models import BulkOperation, FailureGroup, JobType
from django_jobqueue.stats import current_state as present
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.conditions import ENOUGH
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.time_window import HOUR, Window
from django_jobqueue.stats.totals import Line, Lines, busiest, by_queue, by_type, total
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import failure_stats, history, old_transactions
from django_jobqueue.store.reading.failure_stats import Crashes
from django_jobqueue.store.reading.history import (
    Counts,
    Failing,
    Finished,
    ReleaseSpan,
    Span,
)
from django_jobqueue.store.reading.old_transactions import OldTransaction
from django_jobqueue.store.reading.stats import Recent

FRESH: Final = 3.0  # seconds
LATELY: Final = timedelta(days=1)
MOST_LINES: Final = 50  # job types or queues; the busiest of more
MOST_GROUPS: Final = 20
MOST_OPERATIONS: Final = 20


class Now(NamedTuple):
    """The present state, and the problems of the last hour or day."""

    present: Present
    limits: dict[str, int | None]  # of every job type; None is no limit
    groups: list[FailureGroup]  # new or regressed lately, latest first
    operations: list[BulkOperation]  # newest first
    failing: Failing  # too often, in the last hour
    crashes: dict[str, Crashes]  # of each job type, lately
    oldest_transaction: OldTransaction | None
    unfolded: datetime | None


class Past(NamedTuple):
    """The jobs that finished in a window, up to when it was read."""

    start: datetime
    end: datetime
    counts: dict[tuple[str, str], Counts]  # by job type and queue
    spans: list[Span]
    queues: list[Recent]  # those that finished most
    queue_trends: list[Finished]
    releases: list[ReleaseSpan]  # the newest first


class Details(NamedTuple):
    """Figures that are read of a few job types only."""

    names: frozenset[str]
    recent: list[Recent]
    trends: list[Finished]


class Overview(NamedTuple):
    """The job queue, now and in a window."""

    window: Window
    now: Now
    past: Past
    types: Lines
    queues: Lines
    total: Line


_now: CachedValue[Now] = CachedValue()
_past: CachedValue[Past] = CachedValue()
_details: CachedValue[Details] = CachedValue()
_overviews: CachedValue[Overview] = CachedValue()


def read_now() -> Now:
    """The present state, or that of a moment ago."""
    return _now.get(conf.database, FRESH, _read_now)


def read(window: Window) -> Overview:
    """Read it, or what was read a moment ago. Times may be of different moments."""
    now = read_now()
    where = f"{conf.database} {window.name}"
    past = _past.get(where, window.fresh, lambda: _read_past(window))
    return _overviews.get(
        where,
        window.fresh,
        lambda: _overview(window, where, now, past),
        # Added up once from what was read: there may be thousands of job types.
        fits=lambda held: held.now is now and held.past is past,
    )


def _overview(window: Window, where: str, now: Now, past: Past) -> Overview:
    places = now.present.depths, past.counts
    paused: dict[str, set[str]] = {"job type": set(), "queue": set()}
    for pause in now.present.closed:
        paused[pause.what].add(pause.name)
    types = busiest(by_type(*places), paused["job type"], now.limits, MOST_LINES)
    all_queues = by_queue(*places)
    queues = busiest(all_queues, paused["queue"], (), MOST_LINES)
    names = frozenset(line.name for line in types.shown)
    details = _details.get(
        where,
        window.fresh,
        lambda: _read_details(window, past, names),
        fits=lambda held: names <= held.names,
    )
    _fill(types, window, past, details.trends, _by(details.recent, "job_type"))
    _fill(queues, window, past, past.queue_trends, _by(past.queues, "queue"))
    return Overview(
        window=window,
        now=now,
        past=past,
        types=types,
        queues=queues,
        total=total(all_queues.values()),
    )


def forget() -> None:
    """Let the next reading be a new one."""
    _now.forget()
    _past.forget()
    _details.forget()
    _overviews.forget()


def _by(rows: Iterable[Any], name: str) -> dict[str, list[Any]]:
    by_name: dict[str, list[Any]] = {}
    for row in rows:
        by_name.setdefault(getattr(row, name), []).append(row)
    return by_name


def _fill(
    lines: Lines,
    window: Window,
    past: Past,
    trends: Iterable[Finished],
    recent: dict[str, list[Recent]],
) -> None:
    """Add the times and trends to the lines that are shown."""
    step, by_name = window.trend_step, _by(trends, "name")
    steps = -(-window.length // step)
    for line in lines.shown:
        for one in recent.get(line.name, ()):
            line.time(one)
        line.draw(by_name.get(line.name, ()), past.start, step, steps)


def _read_now() -> Now:
    db = DjangoDatabase()
    current = present.read()
    unfolded = history.unfolded(db)
    return Now(
        present=current,
        limits=_limits(),
        groups=_groups(current.time - LATELY),
        operations=_operations(),
        failing=history.failing(
            db, HOUR.start(current.time), least=ENOUGH, percent=conf.alert_failed
        ),
        crashes=failure_stats.crashes(db),
        oldest_transaction=old_transactions.oldest(db),
        unfolded=unfolded,
    )


def _read_past(window: Window) -> Past:
    db = DjangoDatabase()
    end = database_now()
    start = window.start(end)
    counts = history.counts(db, start)
    lines = busiest(by_queue((), counts), (), (), MOST_LINES).shown
    names = [line.name for line in lines]
    spans, queues, trends = history.spans_and_queues(
        db, start, window.step, names, window.trend_step
    )
    return Past(
        start=start,
        end=end,
        counts=counts,
        spans=spans,
        queues=queues,
        queue_trends=trends,
        releases=history.releases(db, start - LATELY),
    )


def _read_details(window: Window, past: Past, names: frozenset[str]) -> Details:
    recent, trends = history.types(
        DjangoDatabase(), past.start, sorted(names), window.trend_step
    )
    return Details(names, recent, trends)


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
    rows = BulkOperation.objects.using(conf.database).exclude(state=WorkState.DRAFT)
    return list(
        rows.only(
            *("kind", "state", "total", "seen", "changed", "created_by", "created_at"),
            *("started_at", "finished_at", "error"),
        ).order_by("-created_at", "-id")[:MOST_OPERATIONS]
    )
