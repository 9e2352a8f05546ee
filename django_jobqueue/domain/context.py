"""The running attempt, as its handler sees it: ``current_job()``, or
``takes_context=True``."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload
from uuid import UUID

from asgiref.sync import sync_to_async

from django_jobqueue.domain.report import Report
from django_jobqueue.exceptions import Cancel, InvalidArguments, NoCurrentJob
from django_jobqueue.text.foreign_words import IN_HANDLER, no_attribute

Row = TypeVar("Row")
Default = TypeVar("Default")


class _Required(Enum):
    REQUIRED = "there must be one"


def _saves_nothing(context: Context) -> None:
    """There is no job row: the context was made by hand."""


@dataclass(slots=True, kw_only=True, eq=False)
class Context:
    """The attempt that is running.

    A handler's reports are stored in memory at once, and its worker writes them at most
    once a second; the last state is written when the attempt ends.
    """

    id: UUID
    job_type: str
    queue: str
    attempt: int  # 1 for the first
    max_attempts: int | None  # None is unlimited
    crashes: int
    data: Any
    run_after: datetime
    created_at: datetime
    worker: str
    priority: int = 0
    deadline: float | None = None  # time.monotonic() at which it times out
    fence: int = 0  # the number of the claim
    metadata: dict[str, Any] = field(default_factory=dict)
    report: Report = field(default_factory=Report, repr=False)
    _cancelled: bool = field(default=False, repr=False)
    _save: Callable[[Context], None] = field(default=_saves_nothing, repr=False)

    if not TYPE_CHECKING:  # or every attribute would be right

        def __getattr__(self, name: str) -> Any:
            no_attribute(self, name, IN_HANDLER)

    @property
    def cancelled(self) -> bool:
        """True if an operator cancelled this job, or its worker is stopping."""
        return self._cancelled

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout; None if there is none."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.monotonic())

    @property
    def schedule(self) -> str | None:
        """The name of the schedule that made this job; None if none did."""
        name = self.metadata.get("schedule")
        return name if isinstance(name, str) else None

    @property
    def fires_at(self) -> datetime | None:
        """The schedule's moment that this job is for, which may be long ago; None if no
        schedule made it. A replay has the same moment."""
        moment = self.metadata.get("fires_at")
        return datetime.fromisoformat(moment) if isinstance(moment, str) else None

    def check_cancelled(self) -> None:
        """Raise ``Cancel`` if the job should stop."""
        if self._cancelled:
            raise Cancel("the handler was asked to stop")

    @overload
    def progress(
        self,
        done: float,
        /,
        total: float | None = None,
        note: str | None = None,
    ) -> None: ...
    @overload
    def progress(
        self,
        rows: Iterable[Row],
        /,
        total: float | None = None,
        note: str | None = None,
    ) -> Iterator[Row]: ...
    @overload
    def progress(
        self,
        rows: AsyncIterable[Row],
        /,
        total: float | None = None,
        note: str | None = None,
    ) -> AsyncIterator[Row]: ...
    def progress(
        self,
        done: Any,
        /,
        total: float | None = None,
        note: str | None = None,
    ) -> Any:
        """Set the progress: ``progress(30, 100, "resizing")``.

        Or pass an iterable: ``for row in job.progress(rows):`` counts the finished
        rows; give ``total`` if they have no length. A None stays as it was. Raises
        ValueError for numbers that are not finite, and TypeError for anything but a
        number or an iterable.
        """
        if isinstance(done, int | float):
            return self.report.progress(done, total, note)
        if total is None and hasattr(done, "__len__"):
            total = len(done)
        if isinstance(done, AsyncIterable):
            return self._acount(done, total, note)
        return self._count(iter(done), total, note)

    def checkin(self, text: str) -> None:
        """Set the note, which is shown with the progress."""
        self.report.progress(None, None, text)

    def log(self, text: object, level: str = "info") -> None:
        """Add a line to this attempt's; the last 200, up to 64 KB, are kept.

        Raises ValueError for an unknown level.
        """
        self.report.log(text, level)

    def spend(self, units: int) -> None:
        """Take this much more from the weighted rates: what the job really used, minus
        its weight at the enqueue. A negative number gives back.

        Written within a second, and at the latest when the attempt ends. Raises
        InvalidArguments unless it is an integer.
        """
        if isinstance(units, bool) or not isinstance(units, int):
            raise InvalidArguments(
                f"What a job spends is a whole number, not {units!r}."
            )
        self.report.spend(units)

    def save_metadata(self) -> None:
        """Write ``metadata`` into the job's row now, for later attempts and for
        readers; in the caller's transaction, if there is one.

        Raises ClaimLost if the job no longer belongs to this worker, and
        InvalidArguments unless it is a JSON object.
        """
        self._save(self)

    async def asave_metadata(self) -> None:
        """``save_metadata`` for async handlers."""
        await sync_to_async(self.save_metadata)()

    def _count(
        self, rows: Iterator[Row], total: float | None, note: str | None
    ) -> Iterator[Row]:
        self.report.progress(0, total, note)
        for done, row in enumerate(rows, 1):
            yield row
            self.report.progress(done, None, None)

    async def _acount(
        self, rows: AsyncIterable[Row], total: float | None, note: str | None
    ) -> AsyncIterator[Row]:
        self.report.progress(0, total, note)
        done = 0
        async for row in rows:
            yield row
            done += 1
            self.report.progress(done, None, None)


# How to get at the context of the attempt that runs here: it is made when it is wanted.
running: Final[ContextVar[Callable[[], Context] | None]] = ContextVar(
    "jobqueue_running", default=None
)


@overload
def current_job() -> Context: ...
@overload
def current_job(default: Default) -> Context | Default: ...
def current_job(default: object = _Required.REQUIRED) -> object:
    """The context of the attempt that runs here: in its handler and the functions it
    calls, in middleware, and inside ``sync_to_async`` and ``async_to_sync``.

    Elsewhere it returns ``default``, or raises NoCurrentJob without one. To use it in a
    thread that a handler started, start the thread with
    ``contextvars.copy_context().run``.
    """
    get = running.get()
    if get is not None:
        return get()
    if default is _Required.REQUIRED:
        raise NoCurrentJob
    return default
