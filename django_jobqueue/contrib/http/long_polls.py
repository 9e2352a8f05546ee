"""Bounds how many requests of this process wait at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore

from django_jobqueue.conf import conf


class Waiters:
    """Places for requests that wait."""

    def __init__(self) -> None:
        self._number = 0
        self._places = BoundedSemaphore(1)

    def places(self) -> BoundedSemaphore:
        """The places that are in force by the settings."""
        number = conf.http_long_polls
        if number != self._number:
            self._number, self._places = number, BoundedSemaphore(max(1, number))
        return self._places


_waiters = Waiters()


@contextmanager
def long_poll() -> Iterator[bool]:
    """Whether the request may wait in this block."""
    places = _waiters.places()
    if not conf.http_long_polls or not places.acquire(blocking=False):
        yield False
        return
    try:
        yield True
    finally:
        places.release()
