"""Waits for jobs to be over, callbacks by the database instead of asking it again.

One connection in the process listens, as long as anybody waits. A notification only
shortens a rest: now and then the job is looked at without.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.exceptions import InvalidArguments, JobNotFound
from django_jobqueue.processes.shared_listener import (
    CHECK_HEARD,
    CHECK_UNHEARD,
    SharedListener,
    Wake,
)
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.notify import News, notify
from django_jobqueue.store.queue import completion_requests
from django_jobqueue.store.rows import Job

_listener = SharedListener("wait", News.OVER)


def _reset_after_fork() -> None:
    """In the child of a fork: the listening thread does not exist there."""
    global _listener
    _listener = SharedListener("wait", News.OVER)


os.register_at_fork(after_in_child=_reset_after_fork)


class Waiting:
    """One wait for one job."""

    def __init__(self, id: UUID | str, timeout: float | None) -> None:
        if timeout is not None and timeout != timeout:  # it would never be over
            raise InvalidArguments(
                f"timeout must be a number of seconds, not {timeout}."
            )
        self.id = as_id(id)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._marked = False

    def check(self) -> Job | None:
        """Return the job if it is over, else None. Raises JobNotFound, and
        RuntimeError in a transaction that keeps the job from workers."""
        if conf.mode != "queue":
            job = memory.find(self.id)
        elif self._mark():
            return None
        else:
            job = find.find(DjangoDatabase(), self.id)
        if job is None:
            raise JobNotFound(self.id)
        if job.is_over:
            return job
        if not self._marked:
            raise RuntimeError(
                f"Job {self.id} cannot be waited for in a transaction: workers see "
                "what it enqueued when it is committed. Wait after that."
            )
        return None

    def seconds_until_check(self) -> float:
        """Seconds until the next check, unless woken. Raises TimeoutError."""
        longest = CHECK_HEARD if _listener.hears else CHECK_UNHEARD
        if self._deadline is None:
            return longest
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"Job {self.id} is not over yet.")
        return min(left, longest)

    def listening(self, wake: Wake) -> AbstractContextManager[None]:
        """Have ``wake`` called in this block."""
        return _listener.listening(str(self.id), wake)

    def _mark(self) -> bool:
        """Ask to be notified; True if this is the first time and the job is queued."""
        db = DjangoDatabase()
        if self._marked:
            if not _listener.hears:
                notify(db, News.HELLO, os.getpid())
        elif not connections[db.alias].in_atomic_block:
            self._marked = completion_requests.mark(db, self.id)
            return self._marked
        return False


@sync_only("await_")
def wait(id: UUID | str, timeout: float | None = None) -> Job:
    """Wait until this job has ended, and return it.

    ``timeout`` is in seconds; None waits forever. A job that failed, expired or was
    cancelled has ended, too: see its ``status``. Raises TimeoutError, JobNotFound,
    InvalidArguments, and RuntimeError in a transaction: workers see its jobs only when
    it commits.
    """
    return until_over(Waiting(id, timeout), threading.Event())


def until_over(
    waiting: Waiting, woken: threading.Event, gives_up: Callable[[], bool] = bool
) -> Job:
    """The job of this wait when it is over; ``woken`` ends its rests. Raises as
    ``wait``, a TimeoutError also when it ``gives_up``."""
    job = waiting.check()
    if job is not None:
        return job
    with waiting.listening(woken.set):
        while job is None:
            woken.wait(waiting.seconds_until_check())
            woken.clear()
            job = waiting.check()
            if job is None and gives_up():
                raise TimeoutError(f"Nobody waits for job {waiting.id} any more.")
    return job


async def await_(id: UUID | str, timeout: float | None = None) -> Job:
    """``wait`` for async code; many can wait in one event loop."""
    waiting, woken = Waiting(id, timeout), asyncio.Event()
    loop, check = asyncio.get_running_loop(), sync_to_async(waiting.check)

    def wake() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(woken.set)

    job = await check()
    if job is not None:
        return job
    with waiting.listening(wake):
        while job is None:
            await _wait(woken, waiting.seconds_until_check())
            woken.clear()
            job = await check()
    return job


async def _wait(woken: asyncio.Event, seconds: float) -> None:
    """Wait until it is set, but no longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
