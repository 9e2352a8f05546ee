"""The one thread in which async handlers of a worker call sync code."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from django_jobqueue.domain.context import running
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.connection_reset import after_job, handlers_run_here
from django_jobqueue.processes.forking import end_if_forked, guard_this_thread
from django_jobqueue.workers.executors.base import patience, safely

P = ParamSpec("P")
T = TypeVar("T")


class GuardedThreads(ThreadPoolExecutor):
    """Threads for sync code of async handlers: a fork made there ends there, too."""

    def __init__(
        self,
        name: str,
        max_workers: int | None = None,
        begin: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(
            max_workers, name, initializer=_begin_guarded, initargs=(begin,)
        )

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Have a thread call this."""
        return super().submit(_guarded, partial(fn, *args, **kwargs))


def _begin_guarded(begin: Callable[[], object]) -> None:
    guard_this_thread()
    begin()


def _guarded(function: Callable[[], T]) -> T:
    try:
        return function()
    finally:
        end_if_forked()


class _Call:
    """A call that runs in the thread."""

    def __init__(self, attempt: Attempt | None) -> None:
        self.attempt = attempt  # whose handler called; None where no handler did
        self.orphaned_at: float | None = None  # time.monotonic()


class SyncCallsThread(GuardedThreads):
    """A pool of one thread, which knows whose call it runs.

    A call that goes on after its attempt has ended keeps every other handler from the
    thread, and no timeout is left that would end it.
    """

    def __init__(self) -> None:
        super().__init__("jobs-sync", 1, handlers_run_here)
        self._call: _Call | None = None
        self._users: list[Attempt] = []  # of its connections

    @property
    def is_busy(self) -> bool:
        """True if something runs in it."""
        return self._call is not None

    def submit(
        self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Have the thread call this."""
        attempt = getattr(running.get(), "__self__", None)
        return super().submit(self._run, attempt, partial(fn, *args, **kwargs))

    def is_blocked(self, now: float) -> bool:
        """True if a call that no timeout ends does not end; now: time.monotonic()."""
        call = self._call
        if call is None or (call.attempt is not None and not call.attempt.over):
            return False
        if call.orphaned_at is None:
            call.orphaned_at = now
        return now - call.orphaned_at > patience(call.attempt)

    def _run(self, attempt: Attempt | None, function: Callable[[], T]) -> T:
        self._call = _Call(attempt)
        try:
            if attempt is not None and attempt not in self._users:
                self._users = [user for user in self._users if not user.over]
                if not self._users:
                    safely(after_job)
                self._users.append(attempt)
            return function()
        finally:
            self._call = None
