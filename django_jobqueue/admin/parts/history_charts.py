"""The charts of the overview, and the same figures as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from django_jobqueue.admin.parts import charts
from django_jobqueue.admin.parts.charts import Chart, Decades
from django_jobqueue.stats.overview import Overview
from django_jobqueue.stats.time_window import HOUR, WEEK, Window
from django_jobqueue.store.reading.history import Span
from django_jobqueue.text import numbers, timezones

MOST: Final = 0.95  # of the attempts
HALF: Final = 0.5
OUTCOMES: Final = ("failed", "other", "succeeded")  # from the base up


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of one span, as text."""

    start: str
    succeeded: str
    failed: str
    other: str
    retried: str
    wait: str
    run_half: str
    run: str


@dataclass(frozen=True, slots=True)
class History:
    """The history of a window, as a chart and as a table, newest first."""

    finished: Chart
    times: Chart
    rows: Sequence[Row]
    per: Any


def history(overview: Overview) -> History:
    """Draw it."""
    window, past = overview.window, overview.past
    starts = [past.start + n * window.step for n in range(window.length // window.step)]
    by_start = {span.start: span for span in past.spans}
    spans = [by_start.get(start) for start in starts]
    labels = _labels(window, past.start, past.end)
    return History(
        finished=_finished(window, starts, spans, labels),
        times=_times(spans, labels),
        rows=[
            _row(window, start, span)
            for start, span in zip(reversed(starts), reversed(spans), strict=True)
            if span is not None
        ],
        per=window.per,
    )


def _finished(
    window: Window,
    starts: Sequence[datetime],
    spans: Sequence[Span | None],
    labels: Sequence[str],
) -> Chart:
    known = [span for span in spans if span is not None]
    most = charts.top(
        max([0, *(sum(getattr(s, outcome) for outcome in OUTCOMES) for s in known)])
    )
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
    )


def _times(spans: Sequence[Span | None], labels: Sequence[str]) -> Chart:
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
    form = "H:i" if window is HOUR else "D H:i"
    return date_format(timezones.local(moment), form, use_l10n=False)


def _labels(window: Window, start: datetime, end: datetime) -> list[str]:
    """The beginning, two marks between, and now."""
    form = "D j" if window is WEEK else "H:i"
    marks = [start + (end - start) * n / 3 for n in range(3)]
    return [
        *(date_format(timezones.local(m), form, use_l10n=False) for m in marks),
        _("now"),
    ]
