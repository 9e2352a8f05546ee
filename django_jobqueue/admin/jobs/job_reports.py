"""The reports of a job's attempts: progress, log lines, queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import TextField
from django.db.models.functions import Cast, Left
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.parts import display
from django_jobqueue.domain.report import LEVELS
from django_jobqueue.domain.states import ArchivedStatus, QueuedStatus
from django_jobqueue.models import ArchivedJob, QueuedJob, Report
from django_jobqueue.text import numbers, timezones
from django_jobqueue.text.json_reading import read_json

MOST: Final = 40  # reports that a page reads
MOST_LINES: Final = 1_000  # of one attempt
LONGEST: Final = 160 * 1024  # characters of the lines of one attempt, as JSON
LONGEST_PAGE: Final = 512 * 1024  # of all those on a page
INEXACT: Final = timedelta(seconds=2)  # a start, by the clocks of two machines


class Line(NamedTuple):
    """One that the handler wrote."""

    when: Any
    level: str
    text: str

    @property
    def style(self) -> str:
        """Of the style."""
        return self.level if self.level in LEVELS else "unknown"


@dataclass(frozen=True, slots=True)
class ShownReport:
    """The report of one attempt, as the page shows it."""

    percent: int | None = None
    text: str = ""  # "30 of 120 (25 %)"
    note: str = ""
    at: Any = ""  # when it told that
    left: str = ""  # an estimate, while it runs
    queries: str = ""
    lines: list[Line] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)  # about lines that are missing

    @property
    def has_progress(self) -> bool:
        """True if it told how far it is, in numbers or in words."""
        return bool(self.text or self.note)


class Reports:
    """The reports of one job. Each is given to one attempt: a crash spends no attempt,
    so that two may have the same number."""

    def __init__(
        self, job: QueuedJob | ArchivedJob, text: Callable[[str], str]
    ) -> None:
        self.current: ShownReport | None = (
            None  # of the attempt that goes on, or succeeded
        )
        self._job = job
        self._text = text
        self._rows: list[Any] = []
        self._left = LONGEST_PAGE

    def read(self, numbers: Iterable[int]) -> None:
        """Read those of attempts with these numbers, and of the current one: one
        query."""
        job = self._job
        rows = Report.objects.filter(
            job_id=job.pk, number__in={*numbers, job.attempts}
        ).defer("lines")
        text = Left(Cast("lines", TextField()), LONGEST + 1)
        self._rows = list(rows.annotate(lines_text=text).order_by("-fence")[:MOST])
        if job.status in (QueuedStatus.RUNNING, ArchivedStatus.SUCCEEDED):
            row = self._row(job.attempts, job.started_at)
            is_running = job.status == QueuedStatus.RUNNING
            left = _time_left(row) if row and is_running else ""
            self.current = row and self._shown(row, left)

    def take(self, number: int, since: datetime | None) -> ShownReport | None:
        """The report of the attempt with this number and start; ask for the newest
        attempt first."""
        row = self._row(number, since)
        return row and self._shown(row)

    def _row(self, number: int, since: datetime | None) -> Any:
        """The report of this attempt, which is given away; None if there is none."""
        rows = [row for row in self._rows if row.number == number]
        if since is not None:
            rows = [row for row in rows if row.started_at > since - INEXACT]
            rows.sort(key=lambda row: abs(row.started_at - since))
        if not rows:
            return None
        self._rows.remove(rows[0])
        return rows[0]

    def _shown(self, row: Any, left: str = "") -> ShownReport:
        remarks = []
        if row.dropped:
            text = ngettext(
                "%(count)s earlier line was dropped.",
                "%(count)s earlier lines were dropped.",
                row.dropped,
            )
            remarks.append(text % {"count": numbers.rounded(row.dropped)})
        lines = list(self._lines(row.lines_text, remarks))
        return ShownReport(
            percent=numbers.whole_percent(row.done, row.total),
            text=numbers.done_text(row.done, row.total),
            note=self._text(row.note),
            at=display.moment(row.updated_at),
            left=left,
            queries=_queries(row),
            lines=lines,
            remarks=remarks,
        )

    def _lines(self, text: str, remarks: list[str]) -> Iterator[Line]:
        if len(text) > min(self._left, LONGEST):
            remarks.append(_("The lines are not shown, because there are too many."))
            return
        self._left -= len(text)
        for line in _parsed(text)[-MOST_LINES:]:
            match line:
                case [int() | float() as seconds, str(level), str(content)]:
                    shown = self._text(content)
                    yield Line(_clock(seconds), display.visible(level), shown)


def _time_left(row: Any) -> str:
    """How long it takes to the end if it goes on as fast as until now."""
    done, total = row.done, row.total
    if not done or not total or not 0 < done < total:
        return ""
    ran = (row.updated_at - row.started_at).total_seconds()
    since = (timezones.now() - row.updated_at).total_seconds()
    left = max(0.0, ran * (total - done) / done - since)
    return _("about %(span)s left") % {"span": numbers.span(left)}


def _parsed(text: str) -> list[Any]:
    """The lines; none if plain SQL wrote what is no list."""
    lines = read_json(text)
    return lines if isinstance(lines, list) else []


def _clock(seconds: float) -> Any:
    """The time of day; the date, too, when pointed at."""
    try:
        at = datetime.fromtimestamp(seconds, UTC)
        local = timezones.local(at)
    except (OverflowError, ValueError, OSError):
        return display.NOTHING
    return format_html(
        '<time datetime="{}" title="{}" dir="ltr">{}</time>',
        at.isoformat(),
        display.exact(at),
        f"{local:%H:%M:%S}",
    )


def _queries(row: Any) -> str:
    """ "12 queries, 34 ms"; empty where nobody counted."""
    if row.queries is None:
        return ""
    text = ngettext("%(count)s query", "%(count)s queries", row.queries)
    parts = [text % {"count": numbers.rounded(row.queries)}]
    if row.query_ms is not None:
        parts.append(numbers.duration(round(row.query_ms)))
    return ", ".join(parts)
