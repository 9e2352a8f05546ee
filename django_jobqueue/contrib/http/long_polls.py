"""Bounds how many requests of this process wait at once, and shares that between
callers."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django_jobqueue.conf import conf


class LongPoll:
    """A request that waits, until it gives up its place."""

    def __init__(self, caller: str) -> None:
        self.caller = caller
        self.woken = threading.Event()
        self.is_over = False  # another caller waits instead

    def end(self) -> None:
        """Let it answer at once, as after its time."""
        self.is_over = True
        self.woken.set()


class LongPolls:
    """The requests that wait, the oldest first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[LongPoll] = []

    def enter(self, caller: str) -> LongPoll | None:
        """Let a request wait. Where as many do as may, the oldest one of the caller
        with most of them gives up its place to one with fewer; None: this has as many.
        """
        poll = LongPoll(caller)
        with self._lock:
            if len(self._waiting) >= conf.http_long_polls:
                numbers = Counter(one.caller for one in self._waiting)
                most = max(numbers.values(), default=0)
                if numbers[caller] >= most:
                    return None
                oldest = next(o for o in self._waiting if numbers[o.caller] == most)
                self._waiting.remove(oldest)
                oldest.end()
            self._waiting.append(poll)
        return poll

    def leave(self, poll: LongPoll) -> None:
        """It does not wait any more."""
        with self._lock:
            if not poll.is_over:
                self._waiting.remove(poll)


_polls = LongPolls()


def _reset_after_fork() -> None:
    """None of the parent's requests waits in the child."""
    global _polls
    _polls = LongPolls()


os.register_at_fork(after_in_child=_reset_after_fork)


@contextmanager
def long_poll(caller: str) -> Iterator[LongPoll | None]:
    """What the request of this caller waits with in this block; None if it may not."""
    poll = _polls.enter(caller)
    try:
        yield poll
    finally:
        if poll is not None:
            _polls.leave(poll)
