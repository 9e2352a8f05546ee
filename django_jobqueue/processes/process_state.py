"""Restores the state of the process that ``runworkers`` changes, since its caller may
go on."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from django_jobqueue.processes.forking import STOP_SIGNALS

FROZEN_AT_START: Final = 1_000  # objects; Python 3.12 begins with some 375

Handle = Callable[[int, FrameType | None], None]


@contextmanager
def signals_handled(stop: Handle, *, wakes: int | None = None) -> Iterator[None]:
    """Until the block ends these signals call ``stop``. With a pipe's end, they and the
    ends of children wake who reads it."""
    handlers: dict[int, Handle] = dict.fromkeys(STOP_SIGNALS, stop)
    before: list[tuple[int, Any]] = []
    woke: int | None = None
    try:
        if wakes is not None:
            handlers[signal.SIGCHLD] = _wake
            woke = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number, handle in handlers.items():
            before.append((number, signal.signal(number, handle)))
        yield
    finally:
        for number, handler in before:
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if woke is not None:
            signal.set_wakeup_fd(woke)


@contextmanager
def memory_frozen() -> Iterator[None]:
    """Until the block ends a collection in a child copies no page that all share."""
    was_frozen = gc.get_freeze_count() > FROZEN_AT_START
    gc.freeze()
    try:
        yield
    finally:
        if not was_frozen:
            gc.unfreeze()


def _wake(number: int, frame: FrameType | None) -> None:
    """A signal that is ignored wakes nobody."""
