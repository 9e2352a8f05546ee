"""A process that the supervisor forks, and what it says to it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django_jobqueue.workers.hangs import Hang
from django_jobqueue.workers.life import ENDED, RELEASED, REPLACE, settle_in

logger = logging.getLogger("django_jobqueue.supervisor")


@dataclass(slots=True)
class Child:
    """A forked process."""

    pid: int
    control: int  # the end of a pipe that is written to
    seat: int  # in the roster; -1 for the keeper
    born: float  # time.monotonic()
    alone: bool = False
    paused_since: float | None = None  # by SIGSTOP
    fenced: bool = False  # killed because its lease could not be renewed
    replaced: bool = False  # its successor runs already
    hang: Hang | None = None  # killed because a handler holds the interpreter's lock

    def tell(self, order: bytes) -> None:
        """Say something through the pipe."""
        with contextlib.suppress(OSError):  # it has ended, and will be reaped
            os.write(self.control, order)

    def is_paused_for(self, seconds: float, now: float) -> bool:
        """Whether it was stopped (SIGSTOP) longer ago than this."""
        return self.paused_since is not None and now - self.paused_since > seconds

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def fork(seat: int, live: Callable[[int], int], inherited: Iterable[int]) -> Child:
    """Fork a process that does ``live`` with the end of a pipe to read from, and exits
    with what it returns.

    ``inherited`` are the pipes' ends of others: their closing says that the supervisor
    died, so a child must not hold them open.
    """
    parent = os.getpid()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            settle_in(parent)
            for end in (writer, *inherited):
                os.close(end)
            code = live(reader)
        except BaseException:
            logger.exception("A process of runworkers failed")
        finally:
            logging.shutdown()
            os._exit(code)
    os.close(reader)
    return Child(pid, writer, seat, time.monotonic())


def how_it_ended(code: int, *, orderly: bool) -> str:
    """An exit code for people; a negative one is a signal.

    Only an orderly end means one of our own codes: a handler may exit with any.
    """
    if code < 0:
        try:
            return f"killed by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"killed by signal {-code}"
    told = {
        ENDED: "ended",
        RELEASED: "stopped with jobs unfinished",
        REPLACE: "replaced, because a job did not stop",
    }
    other = f"exited with code {code}"
    return told.get(code, other) if orderly else other
