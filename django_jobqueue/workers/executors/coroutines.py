"""One event loop for async handlers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.db import connections

from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt, arun
from django_jobqueue.processes import forking
from django_jobqueue.processes.attempt_table import Row
from django_jobqueue.processes.forking import GuardedThreads
from django_jobqueue.workers.executors.base import Executor, Ties, in_thread, safely

CLEAN_EVERY: Final = 1.0  # seconds
TURN: Final = 0.002  # seconds of starting jobs after which tasks that wait have a turn
PAUSE: Final = 0.05  # seconds without a job after which the connection is looked at

# A task runs up to its first await at once, where Python can: tiny handlers never wait
# for the loop to come round.
EAGER: Final[dict[str, Any]] = (
    {"eager_start": True} if sys.version_info >= (3, 12) else {}
)


class Coroutines(Executor):
    """An event loop in a thread; a slot is room for one task.

    Its handlers reach the database through one thread of asgiref's that no other code
    of this process uses.
    """

    is_async = True

    def __init__(self, slots: int, ties: Ties) -> None:
        super().__init__(slots, ties)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._context: contextvars.Context | None = None  # each job has a copy
        self._told_to_stop = asyncio.Event()
        self._native_id = 0  # the system's number of that thread
        self._rows: list[Row] = []  # that nobody uses
        self._ended = 0
        self._last_end = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._is_filling = False

    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as slots come free, in this order."""
        self._buffer.extend(attempts)
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = in_thread("jobs-async", self._serve)
        self._loop.call_soon_threadsafe(self._fill)

    def thread_of(self, attempt: Attempt) -> int | None:
        """All run in one thread, by turns."""
        return None if self._thread is None else self._thread.ident

    def stop(self, timeout: float) -> bool:
        """Stop after what runs; True if it ended in time."""
        if self._loop is None or self._thread is None:
            return True
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._told_to_stop.set)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _serve(self) -> None:
        assert self._loop is not None
        self._native_id = threading.get_native_id()
        forking.guard_this_thread(self._loop)
        self._loop.set_default_executor(GuardedThreads("asyncio"))
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._live())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _live(self) -> None:
        thread = ThreadSensitiveContext()
        await thread.__aenter__()  # type: ignore[no-untyped-call]
        SyncToAsync.context_to_thread_executor[thread] = GuardedThreads("jobs-sync", 1)
        self._context = contextvars.copy_context()
        self._fill()
        cleaning = asyncio.create_task(self._clean())
        await self._told_to_stop.wait()
        while self._running or self._buffer:
            await asyncio.sleep(0.01)
        cleaning.cancel()
        with contextlib.suppress(RuntimeError):  # Python itself is ending
            await sync_to_async(safely)(connections.close_all)
            await thread.__aexit__(None, None, None)  # type: ignore[no-untyped-call]

    def _fill(self) -> None:
        if self._context is None:
            return  # it fills when there is one
        if self._refreshing is not None and not self._refreshing.done():
            return  # it fills when it is done
        now = time.monotonic()
        if not self._running and now - self._last_end > PAUSE:
            self._last_end = now
            self._refreshing = asyncio.create_task(
                self._refresh(), context=self._context.copy()
            )
        else:
            self._is_filling = True
            self._start_until(self._context, now + TURN)
            self._is_filling = False

    def _start_until(self, context: contextvars.Context, end: float) -> None:
        assert self._loop is not None
        while self._buffer and len(self._running) < self.slots:
            if time.monotonic() > end:
                self._loop.call_soon(self._fill)
                return
            attempt = self._buffer.popleft()
            self._running.add(attempt)
            asyncio.Task(
                self._one(attempt), loop=self._loop, context=context.copy(), **EAGER
            )

    async def _one(self, attempt: Attempt) -> None:
        attempt.task = asyncio.current_task()
        rows = self._rows
        row = rows.pop() if rows else self._table.row(self._native_id)
        row.enter(attempt)
        try:
            finished = await arun(attempt)
        except BaseException:
            forking.end_if_forked()
            finished = attempt.finish_broken()
        forking.end_if_forked()
        row.leave()
        rows.append(row)
        self._ended += 1
        self._last_end = finished.ended
        self._done(attempt, finished)
        self._finished(attempt, finished)
        if not self._is_filling:  # else it ended as it was started
            self._fill()

    async def _refresh(self) -> None:
        """After a pause, look first whether the connection is still there."""
        await sync_to_async(safely)(connection_reset.before_job)
        self._refreshing = None
        self._fill()

    async def _clean(self) -> None:
        """What a handler left in the connection that they share is cleaned now and
        then, when it was used."""
        while True:
            await asyncio.sleep(CLEAN_EVERY)
            if self._ended and not self._running:
                self._ended = 0
                await sync_to_async(safely)(connection_reset.after_job)
