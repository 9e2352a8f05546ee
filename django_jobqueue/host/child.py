"""A process that the supervisor forks, and what it says to it."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from django_jobqueue.host.hangs import Hang
from django_jobqueue.processes import forking
from django_jobqueue.workers.worker_main import ENDED, RELEASED, REPLACE

logger = logging.getLogger("django_jobqueue.supervisor")

ENDS: Final = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
CHANGES: Final = os.WEXITED | os.WSTOPPED | os.WCONTINUED
LAST_BREATH: Final = 1.0  # seconds until one that was killed has ended
NOT_KNOWN: Final = 255  # the exit code of a process of which another took it


@dataclass(slots=True)
class Child:
    """A forked process."""

    pid: int
    control: int  # the end of a pipe that is written to
    entry: int  # in the process table; -1 for the maintenance process
    born: float  # time.monotonic()
    quarantined: bool = False
    paused_since: float | None = None  # by SIGSTOP
    fenced: bool = False  # killed because its lease could not be renewed
    is_killed: bool = False
    replaced: bool = False  # its successor runs already
    hang: Hang | None = None  # killed because a handler holds the interpreter's lock
    deaf_looks: int = 0  # in a row, that found nobody at the pipe's other end
    has_left: bool = False  # killed because it runs another program

    def tell(self, order: bytes) -> None:
        """Say something through the pipe."""
        with contextlib.suppress(OSError):  # it has ended, and will be reaped
            os.write(self.control, order)

    def listens(self) -> bool:
        """Whether anybody has the other end of the pipe. After ``os.exec*()`` in a
        handler nobody has: its process goes on, as another program. One that ends has
        closed it a moment before, so it takes two looks to tell."""
        look = select.poll()
        look.register(self.control, 0)  # errors are always told
        self.deaf_looks = self.deaf_looks + 1 if look.poll(0) else 0
        return self.deaf_looks < 2

    def is_paused_for(self, seconds: float, now: float) -> bool:
        """Whether it was stopped (SIGSTOP) longer ago than this."""
        return self.paused_since is not None and now - self.paused_since > seconds

    def look(self) -> os.waitid_result | None:
        """How its state has changed, if it has. One that has ended keeps its number,
        which nobody else can have, until it is reaped.
        """
        try:
            seen = os.waitid(os.P_PID, self.pid, CHANGES | os.WNOHANG | os.WNOWAIT)
            if seen is None or seen.si_code in ENDS:
                return seen
            return os.waitid(os.P_PID, self.pid, CHANGES & ~os.WEXITED | os.WNOHANG)
        except ChildProcessError:  # somebody else has waited for it
            return os.waitid_result(
                (self.pid, 0, signal.SIGCHLD, NOT_KNOWN, os.CLD_EXITED)
            )

    def reap(self) -> None:
        """Let go of one that has ended."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)
        os.close(self.control)

    def code(self, within: float) -> int | None:
        """Its exit code, if it ends within so many seconds."""
        deadline = time.monotonic() + within
        while (seen := self.look()) is None or seen.si_code not in ENDS:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.005)
        return exit_code(seen)

    def kill(self) -> None:
        """End it at once, and with it the programs that its handlers started, but for
        those in a session or a process group of their own."""
        self.is_killed = True
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)


def fork(
    entry: int,
    live: Callable[[int], int],
    inherited: Iterable[int],
    *,
    is_loud: bool = True,
) -> Child:
    """Fork a process that does ``live`` with the end of a pipe to read from, and exits
    with what it returns. If that fails, it tells why, unless it is not to be loud.

    ``inherited`` are the pipes' ends of others: their closing says that the supervisor
    died, so a child must not hold them open. Raises OSError.
    """
    parent = os.getpid()
    forking.let_go()
    reader, writer = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    if pid == 0:
        code = 1
        try:
            forking.settle_in(parent)
            for end in (writer, *inherited):
                os.close(end)
            code = live(reader)
        except BaseException:
            logger.log(
                logging.ERROR if is_loud else logging.DEBUG,
                "A process of runworkers failed",
                exc_info=True,
            )
        finally:
            _exit(code)
    os.close(reader)
    return Child(pid, writer, entry, time.monotonic())


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


def exit_code(seen: os.waitid_result) -> int:
    """That of a process that has ended; negative for a signal."""
    ended = seen.si_code == os.CLD_EXITED
    return seen.si_status if ended else -seen.si_status


def _exit(code: int) -> None:
    """End this process, whatever fails: if it went on, it would be a second
    supervisor."""
    try:
        logging.shutdown()
        forking.flush_output()
    finally:
        os._exit(code)
