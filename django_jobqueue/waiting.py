"""Waits for jobs to be over, told by the database instead of asking it again.

One connection in the process listens, as long as anybody waits. A notification only
shortens a rest: now and then the job is looked at without.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id
from django_jobqueue.enqueueing.memory import memory
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.processes.listener import Listener
from django_jobqueue.store import find
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.notify import News, notify
from django_jobqueue.store.queue import completion_requests
from django_jobqueue.store.rows import Job

LOOK_HEARD: Final = 30.0  # seconds between looks while notifications arrive
LOOK_UNHEARD: Final = 1.0  # and while they do not, as behind a pooler

Tell = Callable[[], None]


class CompletionListener:
    """Listens for all who wait in this process."""

    def __init__(self) -> None:
        self.hears = False  # something has been heard on this connection
        self._lock = threading.Lock()
        self._waiting: dict[UUID, list[Tell]] = {}
        self._listener: Listener | None = None

    def enter(self, id: UUID, tell: Tell) -> None:
        """Call ``tell`` whenever this job should be looked at; from another thread."""
        with self._lock:
            self._waiting.setdefault(id, []).append(tell)
            if self._listener is None and conf.listen is not False:
                self._listener = Listener(OwnConnection("wait"), self._hear)
                self._listener.start()

    def leave(self, id: UUID, tell: Tell) -> None:
        """Nobody waits for this any more; the last who leaves ends the listening."""
        with self._lock:
            tells = self._waiting[id]
            tells.remove(tell)
            if not tells:
                del self._waiting[id]
            idle = None if self._waiting else self._listener
            if idle is not None:
                self._listener, self.hears = None, False
        if idle is not None:
            idle.stop(LOOK_UNHEARD)

    def _hear(self, news: News, about: str) -> None:
        with self._lock:
            if news is News.OVER:
                told = [*self._waiting.get(UUID(about), ())]
            elif news is News.JOB_TYPES:  # or it has just begun to listen
                told = [tell for tells in self._waiting.values() for tell in tells]
            else:
                told = []
        self.hears = self.hears or news is not News.JOB_TYPES
        for tell in told:
            tell()


_listener = CompletionListener()


def _start_anew() -> None:
    """In the child of a fork: the thread that listens was left behind."""
    global _listener
    _listener = CompletionListener()


os.register_at_fork(after_in_child=_start_anew)


class Waiting:
    """One wait for one job."""

    def __init__(self, id: UUID | str, timeout: float | None) -> None:
        self.id = as_id(id)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._marked = False

    def look(self) -> Job | None:
        """The job if it is over; None if it is not. Raises JobNotFound, and
        RuntimeError where it cannot be over soon."""
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

    def rest(self) -> float:
        """Seconds until the next look, if nobody tells. Raises TimeoutError."""
        longest = LOOK_HEARD if _listener.hears else LOOK_UNHEARD
        if self._deadline is None:
            return longest
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"Job {self.id} is not over yet.")
        return min(left, longest)

    @contextmanager
    def listening(self, tell: Tell) -> Iterator[None]:
        """Let ``tell`` be called as long as this lasts."""
        listener = _listener
        listener.enter(self.id, tell)
        try:
            yield
        finally:
            listener.leave(self.id, tell)

    def _mark(self) -> bool:
        """Ask to be notified; whether this is the first time, and the job is queued."""
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
    """Wait until this job is over, and return it.

    ``timeout`` is in seconds; None is without end. A job that failed, expired or was
    cancelled is over, too: see its ``status``. Raises TimeoutError, JobNotFound, and
    RuntimeError in a transaction, whose jobs workers see when it is committed.
    """
    waiting, woken = Waiting(id, timeout), threading.Event()
    job = waiting.look()
    if job is not None:
        return job
    with waiting.listening(woken.set):
        while job is None:
            woken.wait(waiting.rest())
            woken.clear()
            job = waiting.look()
    return job


async def await_(id: UUID | str, timeout: float | None = None) -> Job:
    """``wait`` for async code; many can wait in one event loop."""
    waiting, woken = Waiting(id, timeout), asyncio.Event()
    loop, look = asyncio.get_running_loop(), sync_to_async(waiting.look)

    def tell() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(woken.set)

    job = await look()
    if job is not None:
        return job
    with waiting.listening(tell):
        while job is None:
            await _wait(woken, waiting.rest())
            woken.clear()
            job = await look()
    return job


async def _wait(woken: asyncio.Event, seconds: float) -> None:
    """Until it is set, but no longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
