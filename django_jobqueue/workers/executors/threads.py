"""Runs sync handlers in threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from queue import SimpleQueue
from typing import Final

from django.db import connections

from django_jobqueue.execution import connection_reset
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.processes import forking
from django_jobqueue.processes.attempt_table import Row
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.workers.executors.base import (
    Executor,
    ExecutorCallbacks,
    in_thread,
    safely,
)

Run = Callable[[Attempt], Finished]
OVERHEAD: Final = (
    0.0001  # seconds of Python around each job, under the interpreter lock
)


class Threads(Executor):
    """A pool of threads, made as they are needed; a slot is a thread."""

    def __init__(self, slots: int, callbacks: ExecutorCallbacks, *, run: Run) -> None:
        super().__init__(slots, callbacks)
        self._run = run
        self._lock = threading.Lock()
        self._idle = 0  # threads that wait for a call, and were sent none
        # Not a Condition, whose lock a thread that it woke needs again: the way to the
        # handler was 0.03 ms longer.
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._stopping = False
        self._stuck: Attempt | None = None
        self._threads: list[threading.Thread] = []

    def put(self, attempts: Sequence[Attempt]) -> None:
        """Run these as threads come free, in this order."""
        if attempts:
            wanted = self._threads_for(attempts)
            self._buffer.extend(attempts)  # first: see wakeups.py
            self._wake(wanted)

    def nudge(self) -> None:
        """If what waits has not moved since the last nudge, use every thread."""
        first = self._buffer[0] if self._buffer else None
        if first is not None and first is self._stuck:
            self._wake(self.slots)
        self._stuck = first

    def _threads_for(self, attempts: Sequence[Attempt]) -> int:
        """The number of further threads that these attempts are worth.

        Tiny jobs are done fastest by one thread: with more, they only hand the
        interpreter lock to each other (two threads: half the rate).
        """
        if len(attempts) == 1 and not self._running:
            return 1
        names = [attempt.job.job_type for attempt in attempts]
        short = {name for name in set(names) if self.runtimes.is_short(name)}
        if not short:
            return len(names)
        tiny = sum(name in short for name in names)
        mean = max(map(self.runtimes.mean, short))
        useful = 1 + int(mean / OVERHEAD)  # with those that are at it
        at_it = sum(self.runtimes.is_short(a.job.job_type) for a in self.running)
        return len(names) - tiny + min(tiny, max(0, useful - at_it))

    def _wake(self, wanted: int) -> None:
        """Wake this many threads, or start them."""
        with self._lock:
            woken = min(wanted, self._idle)
            self._idle -= woken
        for _ in range(woken):
            self._calls.put(None)
        if woken == wanted:
            return
        for _ in range(min(wanted - woken, self.slots - self._count())):
            name = f"jobs-{len(self._threads) + 1}"
            self._threads.append(in_thread(name, self._work))

    def stop(self, timeout: float) -> bool:
        """Stop after what runs; True if every thread ended in time."""
        self._stopping = True
        with self._lock:
            woken, self._idle = self._idle, 0
        for _ in range(woken):
            self._calls.put(None)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return self._count() == 0

    def _count(self) -> int:
        return sum(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        forking.guard_this_thread()
        here = connection_reset.handlers_run_here()
        row = self._table.row(threading.get_native_id())
        while (attempt := self._next(row)) is not None:
            if here.must_reset:
                safely(connection_reset.before_job)
            row.enter(attempt)
            try:
                # What a handler sets in context variables ends with it.
                finished = copy_context().run(self._run, attempt)
            except BaseException:
                forking.end_if_forked()
                finished = attempt.finish_broken()
            forking.end_if_forked()
            self._on_done(attempt, finished)  # first, since the cleaning may wait
            if here.must_reset:
                safely(connection_reset.after_job)
            self._finished(attempt, finished)
        connections.close_all()

    def _next(self, row: Row) -> Attempt | None:
        try:
            attempt = self._buffer.popleft()
        except IndexError:
            row.leave()  # else the next one overwrites it
            waited = self._wait()
            if waited is None:
                return None
            attempt = waited
        self._running.add(attempt)
        return attempt

    def _wait(self) -> Attempt | None:
        while True:
            with self._lock:
                try:
                    return self._buffer.popleft()
                except IndexError:
                    if self._stopping:
                        return None
                    self._idle += 1  # under the lock: see put()
            self._calls.get()
