"""Charts of what ended and how long it took, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import charts
from django_jobqueue.admin.parts.charts import Chart, Decades, Mark
from django_jobqueue.stats.time_window import HOUR, MONTH, WEEK, Window
from django_jobqueue.store.reading.history import Span
from django_jobqueue.text import numbers, timezones

MOST: Final = 0.95  # of the attempts
HALF: Final = 0.5
FORMS: Final = {HOUR.name: "H:i", MONTH.name: "D m-d"}  # of a moment in a window
LABELS: Final = {WEEK.name: "D j", MONTH.name: "m-d"}  # of an axis
OUTCOMES: Final = ("failed", "other", "succeeded")  # from the base up


class Row(NamedTuple):
    """The figures of one span, as text."""

    start: str
    succeeded: str
    failed: str
    other: str
    retried: str
    wait: str
    run_half: str
    run: str


class History(NamedTuple):
    """The history of a window, as a chart and as a table, newest first."""

    finished: Chart
    times: Chart
    rows: Sequence[Row]
    per: Any


class Event(NamedTuple):
    """Something that happened in the window: a release began, somebody paused."""

    style: str  # deploy or act
    at: datetime
    text: str


class Period(NamedTuple):
    """The figures of a window, and what they are compared with."""

    window: Window
    start: datetime
    end: datetime
    spans: Sequence[Span]
    before: Sequence[Span] | None = None  # of the period before, ``shift`` ago
    shift: timedelta = timedelta(0)
    events: Sequence[Event] = ()

    @property
    def starts(self) -> list[datetime]:
        """When each span begins."""
        number = self.window.length // self.window.step
        return [self.start + n * self.window.step for n in range(number)]


def history(period: Period) -> History:
    """Draw it."""
    window, starts = period.window, period.starts
    by_start = {span.start: span for span in period.spans}
    spans = [by_start.get(start) for start in starts]
    labels = _labels(window, period.start, period.end)
    marks = _marks(period)
    return History(
        finished=_finished(period, starts, spans, labels, marks),
        times=_times(spans, labels, marks),
        rows=[
            _row(window, start, span)
            for start, span in zip(reversed(starts), reversed(spans), strict=True)
            if span is not None
        ],
        per=window.per,
    )


def _marks(period: Period) -> list[Mark]:
    columns = period.window.length // period.window.step
    return [
        charts.mark(
            event.style,
            (event.at - period.start) / period.window.length,
            columns,
            f"{_moment(period.window, event.at)}: {event.text}",
        )
        for event in period.events
    ]


def _ended(span: Span) -> int:
    return span.failed + span.other + span.succeeded


def _finished(
    period: Period,
    starts: Sequence[datetime],
    spans: Sequence[Span | None],
    labels: Sequence[str],
    marks: Sequence[Mark],
) -> Chart:
    window = period.window
    known = [span for span in spans if span is not None]
    before = [0] * len(starts)
    for span in period.before or ():
        place = (span.start + period.shift - period.start) // window.step
        if 0 <= place < len(before):
            before[place] += _ended(span)
    most = charts.top(max([0, *before, *map(_ended, known)]))
    lines = [] if period.before is None else [_before(before, most)]
    columns = [
        None
        if span is None
        else (
            _bar_title(window, start, span),
            [(outcome, getattr(span, outcome)) for outcome in OUTCOMES],
        )
        for start, span in zip(starts, spans, strict=True)
    ]
    totals = {
        outcome: numbers.number(sum(getattr(s, outcome) for s in known))
        for outcome in OUTCOMES
    }
    summary = _(
        "Jobs that ended, %(window)s: %(succeeded)s succeeded, %(failed)s failed, "
        "%(other)s ended otherwise."
    )
    return Chart(
        width=charts.width_of(len(spans)),
        summary=summary % {**totals, "window": window.label},
        y_labels=[numbers.number(most), numbers.number(most // 2), "0"],
        x_labels=labels,
        bars=charts.bars(columns, most),
        lines=lines,
        marks=marks,
    )


def _before(counts: Sequence[int], most: int) -> charts.Line:
    return charts.line("before", counts, charts.Linear(most))


def _times(
    spans: Sequence[Span | None], labels: Sequence[str], marks: Sequence[Mark]
) -> Chart:
    waits = [None if span is None else span.wait_time(MOST) for span in spans]
    runs = [None if span is None else span.run_time(MOST) for span in spans]
    scale = Decades([*waits, *runs])
    values = {"wait": _greatest(waits), "run": _greatest(runs)}
    summary = _(
        "95 % of the attempts waited and ran no longer than this. Greatest: wait "
        "{wait}, run {run}."
    )
    return Chart(
        width=charts.width_of(len(spans)),
        summary=summary.format(**values),
        y_labels=[numbers.run_time(mark) for mark in scale.marks],
        x_labels=labels,
        lines=[charts.line("wait", waits, scale), charts.line("run", runs, scale)],
        marks=marks,
    )


def _greatest(values: Sequence[float | None]) -> str:
    return numbers.run_time(
        max((value for value in values if value is not None), default=None)
    )


def _bar_title(window: Window, start: datetime, span: Span) -> str:
    text = _("%(time)s: %(succeeded)s succeeded, %(failed)s failed, %(other)s other")
    counts = {outcome: numbers.number(getattr(span, outcome)) for outcome in OUTCOMES}
    return text % {**counts, "time": _moment(window, start)}


def _row(window: Window, start: datetime, span: Span) -> Row:
    return Row(
        start=_moment(window, start),
        succeeded=numbers.number(span.succeeded),
        failed=numbers.number(span.failed),
        other=numbers.number(span.other),
        retried=numbers.number(span.retried),
        wait=numbers.run_time(span.wait_time(MOST)),
        run_half=numbers.run_time(span.run_time(HALF)),
        run=numbers.run_time(span.run_time(MOST)),
    )


def _moment(window: Window, moment: datetime) -> str:
    """When a span began, as exact as the window needs it."""
    form = FORMS.get(window.name, "D H:i")
    return date_format(timezones.local(moment), form, use_l10n=False)


def _labels(window: Window, start: datetime, end: datetime) -> list[str]:
    """The beginning, two marks between, and now."""
    form = LABELS.get(window.name, "H:i")
    marks = [start + (end - start) * n / 3 for n in range(3)]
    return [
        *(date_format(timezones.local(m), form, use_l10n=False) for m in marks),
        _("now"),
    ]
