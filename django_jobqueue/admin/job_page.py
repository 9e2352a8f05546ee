"""What the page of one job shows, read in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import TextField
from django.db.models.functions import Cast
from django.http import HttpRequest
from django.utils.translation import gettext as _

from django_jobqueue.admin import display
from django_jobqueue.admin.base import VIEW_DATA, may, may_view
from django_jobqueue.admin.json_text import JsonText, of_shape, of_value, parsed
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.redaction import mask_text, secrets_in
from django_jobqueue.states import ArchivedStatus, QueuedStatus

MOST_ATTEMPTS: Final = 50
MOST_REPLAYS: Final = 20
MOST_ENTRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Step:
    """A point of the timeline."""

    label: str
    at: datetime
    note: str = ""

    @property
    def when(self) -> Any:
        """The time, for the page."""
        return display.exact_moment(self.at)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as the page shows it."""

    number: int
    kind: str  # of the pill
    end: str
    started_at: datetime | None = None
    ran_ms: int | None = None
    worker: str = ""
    release: str = ""
    error_class: str = ""
    message: str = ""
    traceback: str = ""
    log: str = ""
    group: Any = ""

    @property
    def when(self) -> Any:
        """The start, for the page."""
        return display.full_moment(self.started_at)

    @property
    def ran(self) -> str:
        """How long it took."""
        return display.duration(self.ran_ms)


@dataclass(slots=True)
class JobPage:
    """All of it."""

    state: Any
    summary: list[tuple[Any, Any]]
    timeline: list[Step]
    attempts: list[Attempt]
    data: JsonText
    result: JsonText | None = None
    error: tuple[str, str] = ("", "")  # class and message, where no attempt shows them
    more_attempts: bool = False
    buttons: list[dict[str, Any]] = field(default_factory=list)
    history: list[LogEntry] = field(default_factory=list)


class Reader:
    """Reads what stands around one job, as this user may see it."""

    def __init__(
        self,
        request: HttpRequest,
        job: QueuedJob | ArchivedJob,
        job_type: JobType | None,
    ) -> None:
        self.request = request
        self.job = job
        self.sensitive: list[str] = list(job_type.sensitive) if job_type else []
        self.sees_data = may(request, VIEW_DATA)
        self._data = self._read("data")
        self._secrets = self._secrets_in_data()

    def data(self) -> JsonText:
        """The data, as this user may see it."""
        return self._shown(self._data)

    def result(self) -> JsonText | None:
        """The result of an archived job, as this user may see it."""
        value = self._read("result")
        return None if value is None else self._shown(value)

    def text(self, text: str) -> str:
        """A message, traceback or log of this job."""
        return display.visible(mask_text(text, self._secrets))

    def failures(self) -> tuple[list[Attempt], bool]:
        """The attempts that did not succeed, newest first; and if there are more."""
        found = list(
            Failure.objects.filter(job_id=self.job.pk)
            .defer("frames")
            .order_by("-number", "-id")[: MOST_ATTEMPTS + 1]
        )
        shown = found[:MOST_ATTEMPTS]
        return [self._attempt(one) for one in shown], len(found) > len(shown)

    def error(self, job: ArchivedJob) -> tuple[str, str]:
        """The class and the message that the archive has of it."""
        return display.visible(job.error_class), self.text(job.error_message)

    def other_group(self, fingerprint: UUID | None) -> Any:
        """A link to the failure group of an attempt, unless it is the job's own."""
        own = getattr(self.job, "fingerprint", None)
        return "" if fingerprint == own else self.group(fingerprint)

    def origin(self) -> Any:
        """A link to the archived job that this one repeats, if it is still there."""
        id = self.job.replay_of
        if id is None:
            return display.NOTHING
        there = ArchivedJob.objects.filter(pk=id).exists()
        if there and may_view(self.request, ArchivedJob):
            return display.link("archivedjob", id, display.short_id(id))
        return display.short_id(id)

    def replays(self) -> Any:
        """Links to the jobs that repeat this one, with what became of them."""
        found = replays_of([self.job.pk], MOST_REPLAYS)
        if not found:
            return display.NOTHING
        return display.lines(
            replay_cell(self.request, id, status, model)
            for original, id, status, model in found
        )

    def history(self) -> list[LogEntry]:
        """What operators did with this job, while it was queued and since."""
        types = ContentType.objects.get_for_models(QueuedJob, ArchivedJob).values()
        return list(
            LogEntry.objects.filter(object_id=str(self.job.pk), content_type__in=types)
            .select_related("user")
            .order_by("-action_time")[:MOST_ENTRIES]
        )

    def group(self, fingerprint: UUID | None, error_class: str = "") -> Any:
        """A link to a failure group, named for its class."""
        if fingerprint is None:
            return ""
        if not may_view(self.request, FailureGroup):
            return display.short_id(fingerprint)
        name = display.visible(error_class).rpartition(".")[2]
        return display.link("failuregroup", fingerprint, name or _("failure group"))

    def _read(self, column: str) -> Any:
        """JSON by its text, since Django's field raises for what it cannot read."""
        row = type(self.job)._base_manager.filter(pk=self.job.pk)
        text = row.values_list(Cast(column, TextField()), flat=True).first()
        return None if text is None else parsed(text)

    def _secrets_in_data(self) -> set[str]:
        try:
            return secrets_in(self._data, self.sensitive)
        except RecursionError:
            return set()  # what was stored is masked already

    def _shown(self, value: Any) -> JsonText:
        return of_value(value, self.sensitive) if self.sees_data else of_shape(value)

    def _attempt(self, failure: Failure) -> Attempt:
        ran = None
        if failure.started_at is not None:
            lasted = failure.finished_at - failure.started_at
            ran = round(lasted.total_seconds() * 1_000)
        return Attempt(
            number=failure.number,
            kind=failure.end,
            end=failure.get_end_display(),
            started_at=failure.started_at or failure.finished_at,
            ran_ms=ran,
            worker=display.visible(failure.worker),
            release=display.visible(failure.release),
            error_class=display.visible(failure.error_class),
            message=self.text(failure.error_message or failure.reason),
            traceback=self.text(failure.traceback),
            log=self.text(failure.log_tail),
            group=self.other_group(failure.fingerprint),
        )


def replays_of(ids: Sequence[UUID], limit: int | None = None) -> list[tuple[Any, ...]]:
    """Jobs that repeat these: original, id, status and model name, newest first."""
    columns = ("replay_of", "pk", "status")
    queued = QueuedJob.objects.filter(replay_of__in=ids).order_by()
    archived = ArchivedJob.objects.filter(replay_of__in=ids).order_by()
    both = queued.values_list(*columns).union(archived.values_list(*columns), all=True)
    rows = both.order_by("-pk")
    return [
        (original, id, status, _model_of(status))
        for original, id, status in (rows if limit is None else rows[:limit])
    ]


def replay_cell(request: HttpRequest, id: UUID, status: str, model: str) -> Any:
    """A replay: what it is now, as a link to it."""
    state = display.pill(status, _status_label(status))
    allowed = QueuedJob if model == "queuedjob" else ArchivedJob
    if not may_view(request, allowed):
        return state
    return display.link(model, id, state)


def by_original(rows: Iterable[tuple[Any, ...]]) -> dict[UUID, list[tuple[Any, ...]]]:
    """The replays of each job, newest first."""
    found: dict[UUID, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(row)
    return found


def _model_of(status: str) -> str:
    return "queuedjob" if status in QueuedStatus.values else "archivedjob"


def _status_label(status: str) -> Any:
    statuses = QueuedStatus if status in QueuedStatus.values else ArchivedStatus
    return statuses(status).label
