"""Runs async handlers in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from asgiref.sync import SyncToAsync, ThreadSensitiveContext
from django.db import connections

from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun
from django_jobqueue.execution.observed_attempts import AsyncRun
from django_jobqueue.processes import forking
from django_jobqueue.processes.attempt_table import Row
from django_jobqueue.workers.executors.base import (
    Executor,
    ExecutorCallbacks,
    in_thread,
    safely,
)
from django_jobqueue.workers.executors.sync_calls_thread import (
    GuardedThreads,
    SyncCallsThread,
)

logger = logging.getLogger("django_jobqueue.worker")

CLEAN_EVERY: Final = 1.0  # seconds
TURN: Final = 0.002  # seconds of starting jobs after which tasks that wait have a turn
PAUSE: Final = 0.05  # seconds without a job after which the connection is looked at
CHECK_TIMEOUT: Final = 5.0  # seconds that this may take; then jobs start without it

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

    def __init__(
        self, slots: int, callbacks: ExecutorCallbacks, *, run: AsyncRun = arun
    ) -> None:
        super().__init__(slots, callbacks)
        self._run = run
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._context: contextvars.Context | None = None  # each job has a copy
        self._sync_calls = SyncCallsThread()
        self._stop_requested = asyncio.Event()
        self._native_id = 0  # the system's number of that thread
        self._rows: list[Row] = []  # that nobody uses
        self._ended = 0
        self._last_end = 0.0
        self._refreshing: asyncio.Task[None] | None = None
        self._is_filling = False
        self._is_stopping = False

    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as slots come free, in this order. Raises RuntimeError if there is
        no room for a thread, or the event loop is gone; then they wait in the buffer.
        """
        self._buffer.extend(attempts)
        self._start_thread()
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._fill)

    def nudge(self) -> None:
        """If there was no room for a thread, try again."""
        if self._buffer and self._thread is None:
            self.put([])

    def problem(self, now: float) -> str | None:
        """Why it cannot go on: its event loop is gone, or its one thread for sync code
        does not come back."""
        if self.is_dead:
            return "the event loop of async jobs has ended"
        if self._sync_calls.is_blocked(now):
            return "sync code of a finished async job does not end"
        return None

    @property
    def is_dead(self) -> bool:
        """True if the event loop is gone without a request to stop."""
        thread = self._thread
        return thread is not None and not (thread.is_alive() or self._is_stopping)

    def is_held_up(self, attempt: Attempt) -> bool:
        """True if another handler computes in the event loop, or the thread for sync
        code is busy, on which its receivers may wait."""
        if not attempt.over or self._sync_calls.is_busy or attempt.task is None:
            return True
        now = asyncio.current_task(attempt.task.get_loop())
        return now is not None and now is not attempt.task

    def thread_of(self, attempt: Attempt) -> int | None:
        """All run in one thread, by turns."""
        return None if self._thread is None else self._thread.ident

    def stop(self, timeout: float) -> bool:
        """Stop after what runs; True if it ended in time."""
        self._is_stopping = True
        if self._loop is None or self._thread is None:
            return True
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stop_requested.set)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _start_thread(self) -> None:
        if self._thread is not None:
            return
        self._loop = self._loop or asyncio.new_event_loop()
        self._thread = in_thread("jobs-async", self._serve)

    def _serve(self) -> None:
        loop = self._loop
        assert loop is not None
        self._native_id = threading.get_native_id()
        forking.guard_this_thread(loop)
        loop.set_default_executor(GuardedThreads("asyncio"))
        asyncio.set_event_loop(loop)
        key = ThreadSensitiveContext()
        SyncToAsync.thread_sensitive_context.set(key)
        SyncToAsync.context_to_thread_executor[key] = self._sync_calls
        self._context = contextvars.copy_context()
        self._live_on(loop)
        if not loop.is_closed():
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def _live_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until it is asked to stop, even if a handler stops it, cancels
        all its tasks, or raises SystemExit in a task."""
        living = loop.create_task(self._live())
        while True:
            try:
                loop.run_until_complete(living)
                return
            except BaseException as error:
                forking.end_if_forked()
                if loop.is_closed() or (living.done() and not living.cancelled()):
                    logger.exception("The event loop of async jobs has ended")
                    return
                logger.error(
                    "A handler stopped the event loop of async jobs, or cancelled all "
                    "its tasks (%s: %s); the loop continues",
                    type(error).__name__,
                    error,
                )
                if living.cancelled():
                    living = loop.create_task(self._live())

    async def _live(self) -> None:
        self._take_up_unstarted()
        self._fill()
        cleaning = asyncio.create_task(self._clean())
        try:
            await self._stop_requested.wait()
            while self._running or self._buffer:
                await asyncio.sleep(0.01)
        finally:
            cleaning.cancel()
        with contextlib.suppress(RuntimeError):  # Python itself is ending
            await self._in_sync_calls_thread(connections.close_all)
            self._sync_calls.shutdown()

    def _take_up_unstarted(self) -> None:
        """A task that was cancelled before its first step never ran any of ours."""
        for attempt in self.running:
            if attempt.task is not None and attempt.task.done():
                attempt.task = None
                self._running.discard(attempt)
                self._buffer.appendleft(attempt)

    async def _in_sync_calls_thread(self, clean: Callable[[], None]) -> None:
        assert self._loop is not None
        await self._loop.run_in_executor(self._sync_calls, safely, clean)

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
            try:
                self._start_until(self._context, now + TURN)
            finally:
                self._is_filling = False

    def _start_until(self, context: contextvars.Context, end: float) -> None:
        assert self._loop is not None
        while self._buffer and len(self._running) < self.slots:
            if time.monotonic() > end:
                self._loop.call_soon(self._fill)
                return
            attempt = self._buffer.popleft()
            self._running.add(attempt)
            attempt.task = asyncio.Task(
                self._one(attempt), loop=self._loop, context=context.copy(), **EAGER
            )

    async def _one(self, attempt: Attempt) -> None:
        attempt.task = asyncio.current_task()
        rows = self._rows
        row = rows.pop() if rows else self._table.row(self._native_id)
        row.enter(attempt)
        try:
            finished = await self._run(attempt)
        except BaseException:
            forking.end_if_forked()
            finished = attempt.finish_broken()
        forking.end_if_forked()
        row.leave()
        rows.append(row)
        self._ended += 1
        self._last_end = finished.ended
        self._on_done(attempt, finished)
        self._finished(attempt, finished)
        if not self._is_filling:  # else it ended as it was started
            self._fill()

    async def _refresh(self) -> None:
        """After a pause, look first whether the connection is still there; while the
        thread is busy, it is in use. What needs no connection never waits for it."""
        try:
            if not self._sync_calls.is_busy:
                check = self._in_sync_calls_thread(connection_reset.before_job)
                await asyncio.wait(
                    [asyncio.ensure_future(check)], timeout=CHECK_TIMEOUT
                )
        except Exception:
            logger.exception("The connection of async jobs could not be checked")
        self._refreshing = None
        self._fill()

    async def _clean(self) -> None:
        """Reset the shared connection once a second, if a handler has used it."""
        while True:
            await asyncio.sleep(CLEAN_EVERY)
            self._take_up_unstarted()
            if self._buffer:
                self._fill()  # should a handler have cancelled who was to do it
            if self._ended and not self._running:
                self._ended = 0
                await self._in_sync_calls_thread(connection_reset.after_job)
