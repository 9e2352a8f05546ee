"""The page of one job, read in a fixed number of queries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.urls import reverse

from django_jobqueue.admin.base import REVEAL_DATA, VIEW_DATA, may, may_view
from django_jobqueue.admin.jobs.job_attempts import (
    LONGEST_MESSAGE,
    Attempt,
    Attempts,
    Shown,
    attempts_of,
)
from django_jobqueue.admin.jobs.job_reports import Reports, ShownReport
from django_jobqueue.admin.jobs.related_jobs import Dot
from django_jobqueue.admin.jobs.timeline import Step
from django_jobqueue.admin.parts import display, json_tree
from django_jobqueue.admin.parts.json_text import Unreadable, stored, value_of
from django_jobqueue.admin.parts.json_tree import JsonTree
from django_jobqueue.models import ArchivedJob, FailureGroup, JobType, QueuedJob
from django_jobqueue.text.redaction import Secrets, mask_text, secrets_in

MOST_ENTRIES: Final = 20
LONGEST_ENTRY: Final = 2_000  # characters of what the history says
BEFORE: Final = "attempts"  # the parameter that pages the attempts


@dataclass(slots=True)
class JobPage:
    """Everything on the page."""

    state: Any
    summary: list[tuple[Any, Any]]  # what is unknown or unset is dropped
    timeline: list[Step]
    attempts: Attempts
    data: JsonTree
    metadata: JsonTree | None = None
    current: Attempt | None = None  # the attempt that goes on, or succeeded
    result: JsonTree | None = None
    error: tuple[str, str] = ("", "")  # class and message, where no attempt shows them
    lately: list[Dot] = field(default_factory=list)
    history: list[tuple[LogEntry, str]] = field(default_factory=list)
    downloads: dict[str, str] = field(default_factory=dict)  # addresses by column
    reveal: str = ""  # where secrets are asked for; empty for who may not
    awaits_stack: bool = False  # of the attempt that goes on

    def __post_init__(self) -> None:
        self.summary = [fact for fact in self.summary if fact[1] != display.NOTHING]

    @property
    def newest(self) -> Attempt | None:
        """The latest attempt on the page."""
        return self.current or self.attempts.newest

    @property
    def progress(self) -> ShownReport | None:
        """How far the attempt is that goes on."""
        report = self.current.report if self.current else None
        is_running = self.current is not None and self.current.style == "running"
        return report if report and report.has_progress and is_running else None


class Reader:
    """Reads the data, attempts and log of one job, as this user may see them."""

    def __init__(
        self,
        request: HttpRequest,
        job: QueuedJob | ArchivedJob,
        job_type: JobType | None,
        *,
        reveal: bool = False,
    ) -> None:
        self.request = request
        self.job = job
        self.sensitive: list[str] = list(job_type.sensitive) if job_type else []
        self.sees_data = may(request, VIEW_DATA)
        self._reveal = reveal
        self._hides = False  # whether values were masked so far
        texts = stored(job)
        self._data, self._result = value_of(texts["data"]), value_of(texts["result"])
        self._metadata = value_of(texts["metadata"])
        self._secrets = self._secrets_in_data()
        self.reports = Reports(job, self.text)

    @property
    def value(self) -> Any:
        """The data as they are, for what they say about other jobs."""
        return self._data

    @property
    def about(self) -> Any:
        """The metadata as they are, for what they say about the job's origin."""
        return self._metadata

    def data(self) -> JsonTree:
        """The data, as this user may see it."""
        return self._shown(self._data)

    def result(self) -> JsonTree | None:
        """The result of an archived job, as this user may see it."""
        return self._beside_data(self._result)

    def metadata(self) -> JsonTree | None:
        """The metadata of the job, as this user may see it."""
        return self._beside_data(self._metadata)

    def text(self, text: str) -> str:
        """A message, traceback or log of this job."""
        secrets = self._secrets or ()  # what was stored is masked already
        return display.visible(mask_text(text, secrets))

    def attempts(self) -> Attempts:
        """The attempts that did not succeed, those that the address asks for."""
        before = self.request.GET.get(BEFORE, "")
        shown = Shown(self.text, self.other_group, self.reports)
        known = before.isascii() and before.isdecimal() and len(before) < 19
        return attempts_of(self.job.pk, int(before) if known else None, shown)

    def error(self, job: ArchivedJob) -> tuple[str, str]:
        """The class and the message that the archive has of it."""
        return display.visible(job.error_class), self.text(
            job.error_message[:LONGEST_MESSAGE]
        )

    def other_group(self, fingerprint: UUID | None) -> Any:
        """A link to the failure group of an attempt, unless it is the job's own."""
        own = getattr(self.job, "fingerprint", None)
        return "" if fingerprint == own else self.group(fingerprint)

    def history(self) -> list[tuple[LogEntry, str]]:
        """The log of operators' actions, while the job was queued and since."""
        types = ContentType.objects.get_for_models(QueuedJob, ArchivedJob).values()
        entries = (
            LogEntry.objects.filter(object_id=str(self.job.pk), content_type__in=types)
            .select_related("user")
            .order_by("-action_time")[:MOST_ENTRIES]
        )
        return [
            (entry, self.text(entry.get_change_message()[:LONGEST_ENTRY]))
            for entry in entries
        ]

    def downloads(self) -> dict[str, str]:
        """Where the data and the result can be had whole, for who may see them."""
        if not self.sees_data:
            return {}
        address = self._address("download")
        return {name: f"{address}?of={name}" for name in ("data", "result")}

    def reveal(self) -> str:
        """Where the secrets can be seen, for who may, if the values that were read have
        any."""
        allowed = self.sees_data and may(self.request, REVEAL_DATA)
        return self._address("reveal") if allowed and self._hides else ""

    def group(self, fingerprint: UUID | None, error_class: str = "") -> Any:
        """A link to a failure group, named for its class."""
        if fingerprint is None:
            return ""
        if not may_view(self.request, FailureGroup):
            return display.short_id(fingerprint)
        return display.group_link(fingerprint, error_class)

    def _address(self, view: str) -> str:
        name = f"admin:jobqueue_{self.job._meta.model_name}_{view}"
        address: str = reverse(name, args=[quote(self.job.pk)])
        return address

    def _secrets_in_data(self) -> Secrets | None:
        """None if they are not known, as the data cannot be read."""
        if self.sensitive and isinstance(self._data, Unreadable):
            return None
        try:
            return secrets_in(self._data, self.sensitive)
        except RecursionError:
            return None

    def _beside_data(self, value: Any) -> JsonTree | None:
        """The tree of a value beside the data. Users who cannot read the data are not
        shown which of its values are secret."""
        if value is None:
            return None
        if self._secrets is None and not self._reveal:
            self._hides = True
            return json_tree.of_shape(value)
        return self._shown(value)

    def _shown(self, value: Any) -> JsonTree:
        if not self.sees_data:
            return json_tree.of_shape(value, self._secrets or ())
        tree = json_tree.of_value(
            value, self.sensitive, secrets=self._secrets or (), reveal=self._reveal
        )
        self._hides = self._hides or tree.hides
        return tree
