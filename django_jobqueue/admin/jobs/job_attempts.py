"""The attempts of one job that did not succeed: newest first, alike ones folded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Left, Right
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue.admin.jobs.job_reports import Reports, ShownReport
from django_jobqueue.admin.parts import display
from django_jobqueue.admin.parts.tracebacks import Traceback, traceback_of
from django_jobqueue.models import Failure
from django_jobqueue.text import numbers
from django_jobqueue.text.json_reading import read_json

INLINE: Final = 20  # attempts on a page, besides the first
LONGEST_TRACEBACK: Final = 64 * 1024  # characters shown of one
LONGEST_LOG: Final = 16 * 1024
LONGEST_MESSAGE: Final = 4_000
MOST_TRACEBACKS: Final = 256 * 1024  # characters of all those on a page
MOST_READ: Final = 5  # tracebacks shown frame by frame; the others are text
LARGE: Final = ("traceback", "log_tail", "error_message", "reason", "frames")


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as the page shows it."""

    number: int
    style: str  # of the pill
    end: str
    started_at: datetime | None = None
    finished_at: datetime | None = None
    ran_ms: int | None = None
    worker: str = ""
    release: str = ""
    error_class: str = ""
    message: str = ""
    reason: str = ""  # why it was the last one, or why the wait for the next
    traceback: Traceback | None = None
    text: str = ""  # of a traceback that is not shown frame by frame
    log: str = ""
    note: str = ""  # what is not shown
    group: Any = ""
    report: ShownReport | None = None

    @property
    def when(self) -> Any:
        """The start, for the page."""
        return display.full_moment(self.started_at or self.finished_at)

    @property
    def ran(self) -> str:
        """How long it took."""
        return numbers.duration(self.ran_ms)


class Run(NamedTuple):
    """Attempts in a row that ended alike; the newest comes first, and speaks for
    all."""

    attempts: list[Attempt]

    @property
    def newest(self) -> Attempt:
        """The one whose error is shown."""
        return self.attempts[0]

    @property
    def oldest(self) -> Attempt:
        """The one that began it."""
        return self.attempts[-1]

    @property
    def is_range(self) -> bool:
        """True if they have different numbers: a crash gives its number back."""
        return self.oldest.number != self.newest.number

    @property
    def numbers(self) -> str:
        """ "3", or "1-4" with a dash."""
        first, last = self.oldest.number, self.newest.number
        return f"{first}–{last}" if self.is_range else str(last)

    @property
    def is_several(self) -> bool:
        """True if attempts are folded into it."""
        return len(self.attempts) > 1

    @property
    def summary(self) -> str:
        """How many they are."""
        text = ngettext(
            "the same error, %(count)s time",
            "the same error, %(count)s times",
            len(self.attempts),
        )
        return text % {"count": numbers.number(len(self.attempts))}


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts on the page."""

    runs: list[Run] = field(default_factory=list)
    first: Attempt | None = None  # the very first, where older ones are left out
    older: int | None = None  # show those before this id
    is_newest: bool = True

    @property
    def newest(self) -> Attempt | None:
        """The latest of those that are shown."""
        return self.runs[0].newest if self.runs else None


class Shown:
    """How texts of the job are shown, where links to its groups lead, and what its
    attempts told."""

    def __init__(
        self,
        text: Callable[[str], str],
        group: Callable[[UUID | None], Any],
        reports: Reports,
    ) -> None:
        self.text = text
        self.group = group
        self.reports = reports
        self.left = MOST_TRACEBACKS
        self.unread = MOST_READ


def attempts_of(job_id: UUID, before: int | None, shown: Shown) -> Attempts:
    """The latest attempts, or those before this one, and the first."""
    rows = _rows(job_id)
    page = rows if before is None else rows.filter(pk__lt=before)
    newest = list(page.order_by("-pk")[: INLINE + 1])
    failures, more = newest[:INLINE], len(newest) > INLINE
    first = rows.order_by("pk").first() if more else None
    shown.reports.read(one.number for one in [*failures, first] if one)
    return Attempts(
        runs=list(_runs(failures, shown)),
        first=None if first is None else _shown(first, shown),
        older=failures[-1].pk if more else None,
        is_newest=before is None,
    )


def _runs(failures: Iterable[Any], shown: Shown) -> Iterator[Run]:
    """Those in a row that ended alike, as one that the newest speaks for."""
    for _likeness, run in groupby(failures, key=_likeness_of):
        newest, *others = run
        yield Run([_shown(newest, shown), *(_attempt(one, shown) for one in others)])


def _rows(job_id: UUID) -> QuerySet[Failure]:
    """Without more of any text than is shown."""
    return (
        Failure.objects.filter(job_id=job_id)
        .defer(*LARGE)
        .annotate(
            shown_traceback=Left("traceback", LONGEST_TRACEBACK + 1),
            shown_log=Right("log_tail", LONGEST_LOG),
            shown_message=Left("error_message", LONGEST_MESSAGE),
            shown_reason=Left("reason", LONGEST_MESSAGE),
            frames_text=Cast("frames", TextField()),
        )
    )


def _attempt(failure: Any, shown: Shown) -> Attempt:
    """When, where and how it ended."""
    ran = None
    if failure.started_at is not None:
        lasted = failure.finished_at - failure.started_at
        ran = round(lasted.total_seconds() * 1_000)
    return Attempt(
        number=failure.number,
        style=failure.end,
        end=failure.get_end_display(),
        started_at=failure.started_at,
        finished_at=failure.finished_at,
        ran_ms=ran,
        worker=display.visible(failure.worker),
        release=display.visible(failure.release),
        report=shown.reports.take(failure.number, failure.started_at),
    )


def _shown(failure: Any, shown: Shown) -> Attempt:
    """The same, and what went wrong."""
    traceback, text, note = _traceback(failure, shown)
    attempt = _attempt(failure, shown)
    has_lines = attempt.report is not None and attempt.report.lines
    return replace(
        attempt,
        error_class=display.visible(failure.error_class),
        message=shown.text(failure.shown_message or failure.shown_reason),
        reason=shown.text(failure.shown_reason) if failure.shown_message else "",
        traceback=traceback,
        text=text,
        note=note,
        log="" if has_lines else shown.text(failure.shown_log),
        group=shown.group(failure.fingerprint),
    )


def _likeness_of(failure: Any) -> tuple[Any, ...]:
    """The values that are the same in attempts that ended alike."""
    if failure.fingerprint is not None:
        return failure.end, failure.fingerprint
    message = failure.shown_message or failure.shown_reason
    return failure.end, failure.error_class, message


def _traceback(failure: Any, shown: Shown) -> tuple[Traceback | None, str, str]:
    """The traceback by its frames, or as text, and what is left out of it."""
    text = failure.shown_traceback[:LONGEST_TRACEBACK]
    if not text:
        return None, "", ""
    if len(text) > shown.left:
        left_out = _("The traceback is not shown, because others fill the page.")
        return None, "", left_out
    shown.left -= len(text)
    shown.unread -= 1
    cut = len(failure.shown_traceback) > len(text)
    note = _("Only the beginning of the traceback is shown.") if cut else ""
    if shown.unread < 0:
        return None, shown.text(text), note
    failure.traceback, failure.frames = text, _frames(failure.frames_text)
    return traceback_of(failure, shown.text), "", note


def _frames(text: str) -> list[Any]:
    """The frames that the worker noted; none if plain SQL wrote what is no list."""
    frames = read_json(text)
    return frames if isinstance(frames, list) else []
