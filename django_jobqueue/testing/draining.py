"""``drain()``: runs the waiting jobs, here and now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from asgiref.sync import sync_to_async

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.execution.inline import has_failed
from django_jobqueue.testing.clocks import Clock, aware, clock, clock_that_stands
from django_jobqueue.testing.commits import run_commits
from django_jobqueue.testing.faults import running
from django_jobqueue.testing.inline import InlineWorker, Ran
from django_jobqueue.testing.interruptions import let_through

ENDLESS: Final = 1_000  # jobs


class EndlessDrain(AssertionError):
    """Jobs keep enqueueing further jobs, so the drain would not end."""


@sync_only("adrain")
def drain(
    *,
    queue: str | Iterable[str] | None = None,
    limit: int | None = None,
    until: datetime | timedelta | None = None,
    raise_errors: bool = True,
) -> list[Ran]:
    """Run every job that can run now, and the jobs they enqueue; return the attempts.

    They run in this thread, on this connection and in its transaction. ``on_commit``
    callbacks run first, and after each job.

    :param queue: only jobs of this queue, or of these.
    :param limit: at most this many jobs.
    :param until: let time pass up to this moment, or for this long; later jobs run when
        they are due.
    :param raise_errors: raise a handler's exception once its outcome is written; but
        not ``Snooze``, ``Cancel``, nor ``Retry`` with attempts left.

    Raises EndlessDrain after 1,000 jobs, unless there is a limit; TypeError for an
    ``until`` of another type.
    """
    if running.get() is not None:
        raise RuntimeError("drain() is called by a handler that drain() runs.")
    run_commits()
    if conf.mode != "queue":
        return []
    queues = [queue] if isinstance(queue, str) else list(queue or ())
    worker = InlineWorker(queues or None)
    ran: list[Ran] = []
    with ExitStack() as stack:
        span = _span(stack, until)
        stack.callback(worker.end)
        for one in islice(_attempts(worker, span), limit):
            ran.append(one)
            run_commits()
            _raise(one, raise_errors)
            if limit is None and len(ran) >= ENDLESS:
                raise EndlessDrain(_endless(ran))
    return ran


async def adrain(
    *,
    queue: str | Iterable[str] | None = None,
    limit: int | None = None,
    until: datetime | timedelta | None = None,
    raise_errors: bool = True,
) -> list[Ran]:
    """``drain`` for async tests."""
    return await sync_to_async(drain)(
        queue=queue, limit=limit, until=until, raise_errors=raise_errors
    )


def _attempts(
    worker: InlineWorker, span: tuple[Clock, datetime] | None
) -> Iterator[Ran]:
    """Run job after job; without one, let time pass if allowed."""
    while True:
        worker.tidy()
        while (attempt := worker.claim()) is not None:
            yield worker.run(attempt)
        if span is None or not _pass(worker, *span):
            return


def _span(
    stack: ExitStack, until: datetime | timedelta | None
) -> tuple[Clock, datetime] | None:
    """The clock that stands, or one for as long as the drain takes; and how far it may
    go."""
    if until is None:
        return None
    if not isinstance(until, datetime | timedelta):
        raise TypeError(f"until must be a datetime or a timedelta, not {until!r}.")
    time = clock_that_stands() or stack.enter_context(clock())
    end = time.now + until if isinstance(until, timedelta) else aware(until)
    return time, end


def _pass(worker: InlineWorker, time: Clock, end: datetime) -> bool:
    """Move on to when something happens; False if that is not before the end."""
    if time.now >= end:
        return False
    seconds = worker.next_in()
    if seconds is None or seconds >= (end - time.now).total_seconds():
        time.move_to(end)
    else:
        time.move(max(timedelta(seconds=seconds), timedelta.resolution))
    return True


def _raise(ran: Ran, raise_errors: bool) -> None:
    """Raise what the handler raised, if it is an error, or not meant for us."""
    error = ran.error
    if error is None or ran.outcome is None:
        return
    let_through(error)
    if raise_errors and has_failed(error, ran.outcome):
        error.add_note(
            f"Raised by job {ran.job.id} ({ran.job.job_type}) in attempt "
            f"{ran.attempt}; drain(raise_errors=False) goes on after it."
        )
        raise error


def _endless(ran: list[Ran]) -> str:
    often = Counter(one.job.job_type for one in ran[-100:]).most_common(3)
    names = ", ".join(f"{name} ({count})" for name, count in often)
    return (
        f"drain() ran {len(ran):,} jobs and there may be more. Of the last hundred "
        f"most were {names}. Does a job enqueue itself, or snooze for no time? Give "
        "drain(limit=…) for so many on purpose."
    )
