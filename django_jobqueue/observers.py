"""Observers: code around each attempt and each enqueue, such as tracing.

``observe()`` adds one. Where there is none, nothing of this is called: workers look
when they are built, and an enqueue looks at an empty tuple.
"""

from __future__ import annotations

import json
import logging
import time
from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

if TYPE_CHECKING:
    from django_jobqueue.domain.retry_decision import Outcome
    from django_jobqueue.execution.attempt import Attempt

logger = logging.getLogger("django_jobqueue.observers")

TRACE: Final = "trace"  # the key in the metadata of a job
TRACE_BYTES: Final = 2_000  # of its JSON text; what does not fit is left out
# Also what would end the round of a loop of ours, and again in the next one.
FAILURES: Final = (Exception, SystemExit, CancelledError)
ORIGIN: Final = "origin"  # the key in a replay's trace for that of the original


@dataclass(slots=True, kw_only=True)
class Firing:
    """A schedule at one of its moments."""

    schedule: str  # its name
    rule: str
    time_zone: str
    fires_at: datetime


@dataclass(slots=True, kw_only=True)
class Enqueue:
    """A call that enqueues jobs. ``queue`` and ``ids`` are what was asked for before
    the call, and what the database made of it after the call."""

    job_type: str = ""  # empty for a replay, which may have several
    queue: str | None = None  # None: the database decides, or there are several
    ids: Sequence[UUID] = ()  # none after the call: nothing was enqueued
    size: int = 0  # bytes of the data as JSON text; of all jobs together
    is_many: bool = False  # by enqueue_many, or a replay of several
    is_replay: bool = False
    firing: Firing | None = None  # where a schedule enqueues


@dataclass(frozen=True, slots=True, kw_only=True)
class LostAttempt:
    """An attempt whose end its own thread could not report: its process died, or its
    handler does not stop."""

    id: UUID
    job_type: str
    queue: str
    attempt: int
    crashes: int
    seconds: float  # since it was claimed
    waited: float  # seconds from when the job was due
    worker: str
    outcome: Outcome  # what became of the job
    trace: Mapping[str, str] = field(default_factory=dict)


class Observer:
    """Is called around attempts and enqueues; override what you need.

    Each call is made in the thread, task and context of what it observes, which waits
    for it. An observer that raises is logged once, and left out of that attempt or
    enqueue.
    """

    def around_attempt(self, attempt: Attempt) -> AbstractContextManager[object]:
        """Return the context manager around this attempt: its middleware, its handler
        and the log line about its end.

        At its exit ``attempt.outcome`` is the outcome, None if it is reported by other
        means (``attempt_lost``); ``attempt.error`` is the handler's exception, which
        does not arrive in it.
        """
        return nullcontext()

    def around_enqueue(
        self, enqueue: Enqueue
    ) -> AbstractContextManager[Mapping[str, str] | None]:
        """Return the context manager around this enqueue. The values that it returns
        when it is entered are stored in the metadata of the jobs, under ``trace``.

        A failed enqueue raises in it.
        """
        return nullcontext()

    def attempt_lost(self, lost: LostAttempt) -> None:
        """An attempt ended without its context manager; often in another process."""

    def flush(self, seconds: float) -> None:
        """A process of ours is about to end: send pending data within this time."""


registered: tuple[Observer, ...] = ()
_failed: set[Observer] = set()  # those that are logged


def observe(observer: Observer) -> None:
    """Call this observer around attempts and enqueues, from now on; around attempts in
    workers that are built later. The first one is the outermost."""
    global registered
    if observer not in registered:
        registered = (*registered, observer)


def stop_observing(observer: Observer) -> None:
    """Call it no more, except in workers that are built already."""
    global registered
    registered = tuple(one for one in registered if one is not observer)
    _failed.discard(observer)


def see_attempts() -> bool:
    """True if any observer does something around attempts: to count enqueues costs an
    attempt nothing."""
    return any(
        type(observer).around_attempt is not Observer.around_attempt
        for observer in registered
    )


class Around:
    """The context managers of all observers, as one that never raises."""

    def __init__(self, method: str, about: Attempt | Enqueue) -> None:
        self._method = method
        self._about = about
        self._contexts: list[tuple[Observer, AbstractContextManager[Any]]] = []
        self._trace: dict[str, str] = {}

    def __enter__(self) -> dict[str, str]:
        for observer in registered:
            try:
                context = getattr(observer, self._method)(self._about)
                value = context.__enter__()
                self._contexts.append((observer, context))
                if isinstance(self._about, Enqueue):
                    self._add(value or {})
            except FAILURES:
                _log(observer)
        return self._trace

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for observer, context in reversed(self._contexts):
            try:
                context.__exit__(error_class, error, traceback)
            except FAILURES as raised:
                if raised is not error:
                    _log(observer)

    def _add(self, values: Mapping[str, str]) -> None:
        """Add what fits. Two observers may have baggage."""
        for name, value in values.items():
            held = self._trace.get(name)
            joined = f"{held},{value}" if held and name == "baggage" else value
            trace = {**self._trace, name: joined}
            if len(json.dumps(trace)) <= TRACE_BYTES:
                self._trace = trace


def around_attempt(attempt: Attempt) -> Around:
    """Return the context manager around an attempt."""
    return Around("around_attempt", attempt)


def around_enqueue(enqueue: Enqueue) -> Around:
    """Return the context manager around an enqueue; entered, it returns the trace for
    the metadata of the jobs, which may be empty."""
    return Around("around_enqueue", enqueue)


def report_lost(lost: LostAttempt) -> None:
    """Report an attempt that ended without its context managers."""
    for observer in registered:
        try:
            observer.attempt_lost(lost)
        except FAILURES:
            _log(observer)


def flush(seconds: float) -> None:
    """Have all observers send what waits, in this time for all of them."""
    deadline = time.monotonic() + seconds
    for observer in registered:
        try:
            observer.flush(max(0.0, deadline - time.monotonic()))
        except FAILURES:
            _log(observer)


def trace_of(metadata: str | None) -> dict[str, str]:
    """The trace in the JSON text of a job's metadata; empty if there is none. Plain
    SQL may have written anything."""
    if metadata is None or TRACE not in metadata:
        return {}
    try:
        read = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    trace = read.get(TRACE) if isinstance(read, dict) else None
    if not isinstance(trace, dict):
        return {}
    return {name: value for name, value in trace.items() if isinstance(value, str)}


def _log(observer: Observer) -> None:
    if observer in _failed:
        return
    _failed.add(observer)
    logger.exception(
        "The observer %s failed, and is left out where it does; this is logged once",
        type(observer).__qualname__,
    )
