"""The contents of ``jobqueue status``: read once, as tables for people, as JSON for
programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from textwrap import fill
from typing import Any, Final, NamedTuple

from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.domain.histogram import added, percentile
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.logs import one_line
from django_jobqueue.management.jobqueue.text_tables import (
    Paragraph,
    Part,
    Row,
    Section,
)
from django_jobqueue.rooms import offered
from django_jobqueue.stats import current_state
from django_jobqueue.stats.current_state import Present
from django_jobqueue.stats.unclaimed_jobs import depth_text, notices
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.store.reading.stats import CAP, FailureCount, Recent, WorkerRow
from django_jobqueue.text import numbers
from django_jobqueue.verbs.columns import (
    MEGABYTES,
    NONE,
    NUMBER,
    QUEUES,
    SPAN,
    Column,
    Listing,
    Type,
    local,
    only_json,
)

WINDOW: Final = 3_600.0  # seconds that failures and throughput are of
MOST_ENDED: Final = 10  # workers
COUNT: Final = Type(lambda n: depth_text(n) if n else NONE, right=True)
RUN_TIME: Final = Type(numbers.run_time, right=True)
ONE_LINE: Final = Type(lambda text: " ".join(text.split()))


class StatusList(NamedTuple):
    """A feature's lists after the workers."""

    name: str  # its key of the JSON
    whose: str  # in the help of that
    title: str
    listing: Listing  # of ``At``s
    read: Callable[[Database], Sequence[Any]]


class Figures(NamedTuple):
    """The state of the whole job queue, and what happened in the last hour."""

    present: Present
    failures: list[FailureCount]
    recent: list[Recent]
    of_features: Mapping[str, Sequence[Any]]  # by the name of their list


def read() -> Figures:
    """Read everything, from the caller's connection."""
    db = DjangoDatabase()
    return Figures(
        current_state.read(),
        stats.failures(db, WINDOW),
        stats.recent(db, WINDOW),
        {one.name: one.read(db) for one in offered("status_lists")},
    )


class At(NamedTuple):
    """A row, and when it was read."""

    row: Any
    now: datetime

    def since(self, moment: datetime) -> float:
        """The seconds from then to now."""
        return (self.now - moment).total_seconds()


class Throughput(NamedTuple):
    """The counts of workers, of one job type in one queue or of all."""

    queue: str
    job_type: str
    of: Sequence[Recent]

    def sum(self, name: str) -> int:
        """The sum of these counts."""
        return sum(getattr(one, name) for one in self.of)

    def time(self, name: str, share: float) -> float | None:
        """The time within which this share of them lies."""
        return percentile(added(getattr(one, name) for one in self.of), share)


def _has_ended(worker: WorkerRow) -> bool:
    return worker.state in (WorkerState.STOPPED, WorkerState.LOST)


def _color(worker: WorkerRow) -> str:
    has_lapsed = not _has_ended(worker) and not is_alive(worker)
    if worker.state == WorkerState.LOST or has_lapsed:
        return "red"
    return "yellow" if worker.state == WorkerState.DRAINING else ""


def _left(worker: WorkerRow) -> float | None:
    return worker.lease if is_alive(worker) else None


QUEUED: Final = Listing(
    (
        Column("queue", "Queue", breaks=True),
        Column("job_type", "Job type", breaks=True),
        Column("ready", "Ready", COUNT),
        Column("later", "Later", COUNT),
        Column("retrying", "Retrying", COUNT),
        Column("running", "Running", COUNT),
        Column("oldest", "Oldest", SPAN),
    ),
    "nothing waits, nothing runs.",
)
WORKERS: Final = Listing(
    (
        *only_json("id"),
        Column("name", "Worker", breaks=True),
        *only_json("state"),
        Column("", "State", value=lambda w: w.state if is_alive(w) else "lapsed"),
        Column("queues", note="null is every queue"),
        *only_json("threads async_slots"),
        Column("running", "Running", NUMBER),
        Column("", "Slots", NUMBER, lambda w: w.threads + w.async_slots),
        *only_json("listening age lease release end"),
        Column("", "Lease", SPAN, _left),
        Column("memory", "Memory", MEGABYTES, "rss", "bytes"),
        Column("", "Age", SPAN, "age"),
        Column("alive", value=is_alive),
        Column("remote", value="is_remote"),
        Column("", "Queues", QUEUES, "queues", cut=True),
    ),
    "none.",
    color=_color,
)
ENDED: Final = Listing(
    (
        Column("", "Worker", value="name", breaks=True),
        Column("", "State", value="state"),
        Column("", "How it ended", value="end", cut=True),
    ),
    color=_color,
)
LAST_HOUR: Final = Listing(
    (
        Column("", "Queue", Type(str), "queue", breaks=True),
        Column("job_type", "Job type", Type(str), breaks=True),
        *only_json("queue"),
        Column("succeeded", "Succeeded", NUMBER, lambda one: one.sum("succeeded")),
        Column("failed", "Failed", NUMBER, lambda one: one.sum("failed")),
        Column("retried", "Retried", NUMBER, lambda one: one.sum("retried")),
        Column("other", value=lambda one: one.sum("other")),
        Column("wait_p95", "Wait p95", RUN_TIME, lambda one: one.time("wait", 0.95)),
        Column("run_p50", "Run p50", RUN_TIME, lambda one: one.time("run", 0.5)),
        Column("run_p95", "Run p95", RUN_TIME, lambda one: one.time("run", 0.95)),
    ),
    "no attempt ended.",
)
FAILURES: Final = Listing(
    (
        Column("", "Jobs", COUNT, "row.count"),
        Column("error_class", "Exception", value="row.error_class", breaks=True),
        Column("job_type", "Job type", value="row.job_type", breaks=True),
        *only_json("count last message", "row"),
        Column("", "Last ago", SPAN, lambda one: one.since(one.row.last)),
        Column("", "Message", ONE_LINE, "row.message", cut=True),
    ),
    "none.",
)
PAUSED: Final = Listing(
    (
        Column("what", "What", value="row.what"),
        Column("name", "Name", value="row.name", breaks=True),
        Column(
            "",
            "Ends in",
            SPAN,
            lambda one: None if one.row.until is None else -one.since(one.row.until),
        ),
        Column("by", "By", value="row.by", cut=True),
        *only_json("reason since until", "row"),
        Column(
            "", "Reason", value=lambda one: " ".join(one.row.reason.split()), cut=True
        ),
    ),
    color=lambda one: "yellow",
)
NOTICES: Final = Listing(
    (
        Column(
            "code",
            note="no_worker, all_draining, queue_not_served, job_type_not_known or "
            "queue_not_served_for_job_type",
        ),
        *only_json("message queue job_type jobs"),
    )
)
ONE_OF_ALL: Final = {
    "time": "when the figures were read, by the database's clock",
    "depth_cap": f'{CAP}; ready, later or retrying above it means "more than that"',
    "window": "seconds that throughput and failures cover",
}


def _lists() -> dict[str, Listing]:
    """By their keys of the JSON."""
    return {
        "notices": NOTICES,
        "queues": QUEUED,
        "workers": WORKERS,
        **{one.name: one.listing for one in offered("status_lists")},
        "throughput": LAST_HOUR,
        "failures": FAILURES,
        "paused": PAUSED,
    }


def keys() -> str:
    """The keys of the JSON, for the help."""
    whose = {one.name: f", {one.whose}" for one in offered("status_lists")}
    lists = {
        name: f"list of {one.keys}{whose.get(name, '')}"
        for name, one in _lists().items()
    }
    words = {**ONE_OF_ALL, **lists, "health": "with --check, see jobqueue health"}
    return "\n".join(
        fill(text, 79, initial_indent=f"  {name:<12}", subsequent_indent=" " * 14)
        for name, text in words.items()
    )


def rows_of(figures: Figures) -> dict[str, list[Any]]:
    """The rows of each list."""
    present, now = figures.present, figures.present.time
    return {
        "notices": list(notices(present)),
        "queues": list(present.depths),
        "workers": list(present.workers),
        **{
            name: [At(row, now) for row in rows]
            for name, rows in figures.of_features.items()
        },
        "throughput": [Throughput(r.queue, r.job_type, [r]) for r in figures.recent],
        "failures": [At(row, now) for row in figures.failures],
        "paused": [At(row, now) for row in present.closed],
    }


def as_object(figures: Figures) -> dict[str, Any]:
    """The figures as JSON has them; the keys are stable."""
    rows = rows_of(figures)
    return {
        "time": figures.present.time,
        "depth_cap": CAP,
        "window": WINDOW,
        **{
            name: list(map(one.as_object, rows[name])) for name, one in _lists().items()
        },
    }


def parts(figures: Figures) -> list[Part]:
    """Everything: what is wrong, and a section for each kind of thing."""
    zone = timezone.get_current_timezone_name()
    when = f"{local(figures.present.time)} {zone}"
    rows = rows_of(figures)
    wrong = [one_line(notice.message) for notice in rows["notices"]]
    ended = sorted(filter(_has_ended, rows["workers"]), key=lambda worker: -worker.id)
    title = "Workers that ended in the last 10 minutes"
    if len(ended) > MOST_ENDED:
        title += f" (the newest {MOST_ENDED} of {numbers.number(len(ended))})"
    recent = sorted(rows["throughput"], key=lambda one: one[:2])
    hour = _section("The last hour", LAST_HOUR, recent, is_grouped=True)
    if len(recent) > 1:
        cells = LAST_HOUR.cells(Throughput("all", "", figures.recent))
        hour = hour._replace(rows=[*hour.rows, Row(cells)])
    working = (worker for worker in rows["workers"] if not _has_ended(worker))
    failed = "Jobs that failed for good in the last hour"
    sections = (
        _section("Queues", QUEUED, rows["queues"], is_grouped=True),
        _section("Workers", WORKERS, working),
        _section(title, ENDED, ended[:MOST_ENDED]),
        *(
            _section(one.title, one.listing, rows[one.name])
            for one in offered("status_lists")
        ),
        hour,
        _section(failed, FAILURES, rows["failures"]),
        _section("Paused", PAUSED, rows["paused"]),
    )
    return [
        Paragraph(f"Job queue in database {conf.database!r}, {when}"),
        *([Paragraph("")] if wrong else []),
        *(Paragraph(text, "bold red") for text in wrong),
        *(section for section in sections if section.rows or section.empty),
    ]


def _section(
    title: str, listing: Listing, shown: Iterable[Any], *, is_grouped: bool = False
) -> Section:
    """These rows as a table; grouped ones have their first text where it changes."""
    rows, before = [], None
    for one in shown:
        first, *others = listing.cells(one)
        is_repeated = is_grouped and first == before
        cells = ["" if is_repeated else first, *others]
        rows.append(Row(cells, listing.color(one)))
        before = first
    return Section(title, listing.shown, rows, listing.empty)
