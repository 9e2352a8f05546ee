"""The rows that the store returns: frozen, and never models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from django_jobqueue.text.foreign_words import JOB, no_attribute
from django_jobqueue.text.json_reading import read_json


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class Job:
    """A job as it was when it was read, wherever it is."""

    # Not frozen: that would take a fifth of the time that our part of an enqueue takes.

    id: UUID
    job_type: str
    queue: str
    priority: int
    status: str  # queued, running, succeeded, failed, expired or cancelled
    data: Any
    run_after: datetime
    expires_at: datetime | None
    created_at: datetime
    attempts: int = 0
    # Of this job alone; None is what its type says.
    max_attempts: int | None = None
    timeout: timedelta | None = None
    backoff: Any = None  # {"policy": "fixed", "wait": 30.0}
    crashes: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    worker: str = ""
    result: Any = None
    error_class: str = ""
    error_message: str = ""
    fingerprint: UUID | None = None
    replay_of: UUID | None = None
    metadata: Any = None
    tags: tuple[str, ...] = ()
    # What the enqueue that returned it did; both are false for one that was there.
    is_new: bool = field(default=False, compare=False, repr=False)
    is_replaced: bool = field(default=False, compare=False, repr=False)

    if not TYPE_CHECKING:  # or every attribute would be right

        def __getattr__(self, name: str) -> Any:
            no_attribute(self, name, JOB)

    @property
    def is_over(self) -> bool:
        """True if the job is archived."""
        return self.status not in ("queued", "running")


def tags_of(text: str | None) -> tuple[str, ...]:
    """The tags of a job, from their JSON text. Plain SQL may have written anything."""
    tags = None if text is None else read_json(text)
    return tuple(filter(_is_text, tags)) if isinstance(tags, list) else ()


def _is_text(value: object) -> bool:
    return isinstance(value, str)


class ClaimedJob(NamedTuple):
    """A job that this worker may run. ``fence`` proves the claim."""

    id: UUID
    job_type: str
    queue: str
    priority: int
    data: str  # JSON text; read in the attempt, where an error is that attempt's
    attempts: int  # this one included
    max_attempts: int | None
    crashes: int
    fence: int
    due: float  # run_after, in seconds since 1970: a datetime takes ten times as long
    created: float  # likewise
    waited: float  # seconds from run_after to the claim
    expires_in: float | None  # seconds, counted from the claim
    metadata: str | None = None  # JSON text
    timeout: float | None = None  # seconds; None is what its type says
    backoff: str | None = None  # JSON text; likewise
    limit_key: str | None = None  # "<limit> <key>"; None if it counts against none

    @property
    def run_after(self) -> datetime:
        """When it was due."""
        return datetime.fromtimestamp(self.due, UTC)

    @property
    def created_at(self) -> datetime:
        """When it was enqueued."""
        return datetime.fromtimestamp(self.created, UTC)

    @property
    def lane(self) -> Lane:
        """The lane that it was claimed from."""
        return Lane(self.queue, self.priority, self.job_type)


def claimed_jobs(rows: Iterable[tuple[Any, ...]]) -> list[ClaimedJob]:
    """The rows of a claim; their columns are the fields."""
    return list(map(_as_claimed, rows))


_as_claimed = partial(tuple.__new__, ClaimedJob)  # a third of what _make() takes


class Lane(NamedTuple):
    """A queue, a priority and a job type: what a claim reads in order."""

    queue: str
    priority: int
    job_type: str
