"""The tables of the overview: job types, queues, workers, bulk operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.html import conditional_escape
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from django_jobqueue.admin.base import may
from django_jobqueue.admin.bulk.bulk_progress import progress_in_list
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.charts import spark, sparkline
from django_jobqueue.admin.parts.depths import age_text
from django_jobqueue.admin.parts.history_charts import HALF, MOST
from django_jobqueue.admin.tabs import address_of
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.stats.overview import Overview
from django_jobqueue.stats.totals import Depths, Line, Lines
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import is_alive
from django_jobqueue.text import numbers

MOST_WORKERS: Final = 50
SHOWN_OPERATIONS: Final = 5


class Column(NamedTuple):
    """The title of a column, and the class of its cells."""

    label: SafeString
    style: str = ""


class Cell(NamedTuple):
    """A number of jobs, and the list of them."""

    text: str
    url: str = ""
    limit: str = ""  # of the number
    is_bad: bool = False


class Row(NamedTuple):
    """The figures of a job type or queue."""

    name: str
    url: str
    is_paused: bool
    cells: Sequence[tuple[Column, Cell]]
    trend: SafeString

    @property
    def is_bad(self) -> bool:
        """True if something is wrong now."""
        return any(cell.is_bad for _column, cell in self.cells)


class Table(NamedTuple):
    """Rows, what is wrong first, then by name; and a note about those not shown."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str


class WorkerRow(NamedTuple):
    """A worker."""

    name: str
    url: str
    state: Any
    running: str
    queues: str
    memory: str
    age: str
    release: str


class OperationRow(NamedTuple):
    """A bulk operation."""

    label: str
    url: str
    state: Any
    progress: str
    share: int | None  # percent
    by: str
    created: Any


def types(request: HttpRequest, overview: Overview) -> Table:
    """A row for each job type that is not idle."""
    return _table(request, overview, overview.types, "jobtype", "job_type")


def queues(request: HttpRequest, overview: Overview) -> Table:
    """A row for each queue that is not idle."""
    return _table(request, overview, overview.queues, "queue", "queue")


def count(depths: Depths, name: str) -> str:
    """A number of jobs; with a plus if that many and perhaps more."""
    text = numbers.number(getattr(depths, name))
    return f"{text}+" if name in depths.at_least else text


def may_follow(request: HttpRequest, model: str) -> bool:
    """True if the user may see this model's page, and it is on this site. That of a
    feature has its label, as in ``jobqueue_schedules.schedule``."""
    label, _dot, name = model.rpartition(".")
    label = label or "jobqueue"
    may_view = may(request, f"{label}.view_{name}")
    return may_view and bool(address_of(request, name, label))


def workers(request: HttpRequest, overview: Overview) -> list[WorkerRow]:
    """Those that live or should, and those that ended lately; what is wrong first."""
    follow = may_follow(request, "worker")
    ordered = sorted(overview.now.present.workers, key=_urgency)
    return [
        WorkerRow(
            name=display.visible(one.name),
            url=display.url_of("worker", one.id) if follow else "",
            state=_state(one),
            running=display.attempts(one.running, one.threads + one.async_slots),
            queues=_("every queue")
            if one.queues is None
            else display.names(one.queues),
            memory=filesizeformat(one.rss) if one.rss else display.NOTHING,
            age=numbers.span(one.age),
            release=display.visible(one.release) or display.NOTHING,
        )
        for one in ordered
    ]


def operations(request: HttpRequest, overview: Overview) -> list[OperationRow]:
    """The newest."""
    follow = may_follow(request, "bulkoperation")
    return [
        OperationRow(
            label=str(one.get_kind_display()),
            url=display.url_of("bulkoperation", one.pk) if follow else "",
            state=display.pill(one.state, one.get_state_display()),
            progress=_progress(one),
            share=progress_in_list(request, one).percent,
            by=display.visible(one.created_by) or display.NOTHING,
            created=display.moment(one.created_at),
        )
        for one in overview.now.operations[:SHOWN_OPERATIONS]
    ]


def _table(
    request: HttpRequest,
    overview: Overview,
    lines: Lines,
    model: str,
    parameter: str,
) -> Table:
    what = "queue" if model == "queue" else "job type"
    closed = {one.name for one in overview.now.present.closed if one.what == what}
    failing = overview.now.failing
    bad = failing.queues if model == "queue" else failing.types
    addresses = Addresses(request, model, parameter)
    columns = _columns()
    rows = [
        _row(line, columns, addresses, overview, line.name in closed, line.name in bad)
        for line in lines.shown
    ]
    rows.sort(key=lambda row: not row.is_bad)
    notes = [*_hidden(lines.hidden), *_idle(lines.idle, overview)]
    return Table(columns, rows, " ".join(notes))


def _columns() -> list[Column]:
    """The columns of numbers, in the order of the cells."""
    labels = [
        (_("Ready"), ""),
        (_("Later"), ""),
        (_("Retrying"), ""),
        (_("Running"), ""),
        (_("Oldest"), ""),
        (_("Finished"), "jq-past"),
        (_("Failed"), ""),
        (_("Wait p95"), ""),
        (_("Run p50"), ""),
        (_("Run p95"), ""),
    ]
    return [Column(conditional_escape(label), style) for label, style in labels]


def _hidden(count: int) -> Iterator[str]:
    """How many had jobs, and yet are not shown."""
    if count:
        text = ngettext(
            "%(count)s more with fewer failures and jobs is not shown.",
            "%(count)s more with fewer failures and jobs are not shown.",
            count,
        )
        yield text % {"count": numbers.number(count)}


def _idle(count: int, overview: Overview) -> Iterator[str]:
    """The number of rows without any job in the window."""
    if count:
        text = ngettext(
            "%(count)s idle row hidden (%(window)s).",
            "%(count)s idle rows hidden (%(window)s).",
            count,
        )
        window = overview.window.label
        yield text % {"count": numbers.number(count), "window": window}


class Addresses:
    """Where the cells of a table lead, as far as the user may follow."""

    def __init__(self, request: HttpRequest, model: str, parameter: str) -> None:
        self._model = model
        self._parameter = parameter
        self.are_types = model == "jobtype"
        self._objects = self.are_types and may_follow(request, model)
        self._lists = {
            name: address_of(request, name) if may_follow(request, name) else ""
            for name in ("queuedjob", "archivedjob")
        }

    def object(self, name: str) -> str:
        """The page of a job type; a queue has one only if it was ever paused."""
        return display.url_of(self._model, name) if self._objects else ""

    def list(self, of: str, name: str, **query: str) -> str:
        """Its jobs of this kind."""
        address = self._lists[of]
        if not address:
            return ""
        return f"{address}?{urlencode({self._parameter: name, **query})}"


def _row(
    line: Line,
    columns: Sequence[Column],
    addresses: Addresses,
    overview: Overview,
    is_paused: bool,
    is_failing: bool,
) -> Row:
    depths, share = line.depths, line.failed_share

    def waiting(state: str) -> Cell:
        number = getattr(depths, state)
        url = addresses.list("queuedjob", line.name, state=state) if number else ""
        return Cell(count(depths, state), url)

    limit = overview.now.limits.get(line.name) if addresses.are_types else None
    is_slow = not is_paused and (depths.oldest or 0) > conf.alert_wait
    failed = addresses.list("archivedjob", line.name, status="failed")
    running = waiting("running")._replace(
        limit="" if limit is None else numbers.number(limit)
    )
    cells = [
        *map(waiting, ("ready", "later", "retrying")),
        running,
        Cell(age_text(depths.oldest), is_bad=is_slow),
        Cell(numbers.number(line.finished)),
        Cell(
            numbers.percent(share),
            failed if line.failed else "",
            is_bad=is_failing,
        ),
        Cell(numbers.run_time(line.wait_time(MOST))),
        Cell(numbers.run_time(line.run_time(HALF))),
        Cell(numbers.run_time(line.run_time(MOST))),
    ]
    return Row(
        name=display.breakable(line.name),
        url=addresses.object(line.name),
        is_paused=is_paused,
        cells=list(zip(columns, cells, strict=True)),
        trend=sparkline(spark(line.trend, _trend_text(line, overview)), "succeeded"),
    )


def _trend_text(line: Line, overview: Overview) -> str:
    text = _("%(finished)s finished, %(failed)s of them failed, %(window)s")
    return text % {
        "finished": numbers.number(line.finished),
        "failed": numbers.number(line.failed),
        "window": overview.window.label,
    }


def _urgency(worker: stats.WorkerRow) -> tuple[int, str]:
    if is_alive(worker):
        return (2 if worker.state == WorkerState.RUNNING else 1), worker.name
    return (3 if worker.state == WorkerState.STOPPED else 0), worker.name


def _state(worker: stats.WorkerRow) -> Any:
    state = WorkerState(worker.state)
    if state in (WorkerState.STOPPED, WorkerState.LOST) or is_alive(worker):
        return display.pill(state.value, state.label)
    return display.pill("lapsed", pgettext("worker", "lapsed"))


def _queues(worker: stats.WorkerRow) -> str:
    return _("every queue") if worker.queues is None else display.names(worker.queues)


def _progress(operation: Any) -> str:
    if operation.total is None:
        return numbers.number(operation.seen)
    return f"{numbers.number(operation.seen)} / {numbers.number(operation.total)}"
