"""Long work in batches, with a bar, which Ctrl-C ends between two of them."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from django.core.management.base import CommandError
from django.db import DatabaseError

from django_jobqueue.management.jobqueue import rich_output
from django_jobqueue.management.jobqueue.console import Console
from django_jobqueue.text import numbers

BATCH: Final = 1_000  # jobs
INTERRUPTED: Final = 128 + signal.SIGINT  # what a shell returns for it

audit_log = logging.getLogger("django_jobqueue.operations")
sleep = time.sleep


def run_batches(
    steps: Iterable[int],
    console: Console,
    bar: tuple[str, int],
    summary: Callable[[], str],
    *,
    pause: float = 0.0,
) -> None:
    """Take the steps, each of which does a batch and yields how much that was.

    ``bar`` is the title of the progress bar and the number to come; ``pause`` is the
    rest, in seconds, after each batch that changed something. Raises CommandError when
    interrupted; ``summary`` says what was done until then.
    """
    iterator = iter(steps)
    try:
        with progress(console, *bar) as advance:
            while True:
                with unbroken():
                    done = next(iterator, None)
                if done is None:
                    return
                advance(done)
                if done and pause:
                    sleep(pause)
    except KeyboardInterrupt:
        raise CommandError(
            f"Interrupted. {summary()}", returncode=INTERRUPTED
        ) from None
    except DatabaseError:
        console.warn(f"The database failed. {summary()}")
        raise


@contextmanager
def progress(
    console: Console, title: str, total: int
) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, if rich is installed; call what it gives with the number
    that was done. Nothing is left behind."""
    if console.rich is None or not console.verbosity:
        yield lambda number: None
        return
    bar = rich_output.bar(console.rich)
    line = bar.add_task(title, total=total, counts="")

    def advance(number: int) -> None:
        done = int(bar.tasks[0].completed) + number
        most = max(total, done)  # there may be more than was counted before
        share = numbers.percent(done / most if most else None)
        counts = f"{numbers.number(done)} / {numbers.number(most)}  {share}"
        bar.start()
        bar.update(line, completed=done, total=most, counts=counts, refresh=True)

    def make_room(record: logging.LogRecord) -> bool:
        """The log may be on the same terminal; the bar is back after the next step."""
        bar.stop()
        return True

    audit_log.addFilter(make_room)
    try:
        advance(0)
        yield advance
    finally:
        audit_log.removeFilter(make_room)
        bar.stop()


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
