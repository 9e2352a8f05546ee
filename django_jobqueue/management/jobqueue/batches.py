"""Long work in batches, which Ctrl-C ends between two of them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from django.core.management.base import CommandError
from django.db import DatabaseError

from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.management.jobqueue.progress import Progress

BATCH: Final = 1_000  # jobs
INTERRUPTED: Final = 128 + signal.SIGINT  # what a shell returns for it

rest = time.sleep


def run_batches(
    steps: Iterable[int],
    progress: Progress,
    console: Console,
    summary: Callable[[], str],
    *,
    pause: float = 0.0,
) -> None:
    """Take the steps, each of which does a batch and yields how much that was.

    ``pause`` is the rest, in seconds, after each batch that changed something. Raises
    CommandError when interrupted; ``summary`` says what was done until then.
    """
    iterator = iter(steps)
    try:
        with progress:
            while True:
                with unbroken():
                    done = next(iterator, None)
                if done is None:
                    return
                progress.advance(done)
                if done and pause:
                    rest(pause)
    except KeyboardInterrupt:
        raise CommandError(
            f"Interrupted. {summary()}", returncode=INTERRUPTED
        ) from None
    except DatabaseError:
        console.warn(f"The database failed. {summary()}")
        raise


@contextmanager
def unbroken() -> Iterator[None]:
    """Let a first Ctrl-C wait until the block has ended; a second one does not wait."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = 0

    def remember(number: int, frame: FrameType | None) -> None:
        nonlocal interrupts
        interrupts += 1
        if interrupts > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt
