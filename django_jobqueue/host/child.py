"""A process that the supervisor forks, and the pipe through which it gets orders."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from django_jobqueue.host.hangs import Hang
from django_jobqueue.processes import forking, identity
from django_jobqueue.processes.process_table import ProcessEntry
from django_jobqueue.processes.shutdown import Step
from django_jobqueue.workers.worker_main import (
    CANCEL,
    DRAIN,
    END,
    ENDED,
    QUIT,
    RELEASED,
    REPLACE,
    RESUME,
)

logger = logging.getLogger("django_jobqueue.supervisor")

ENDS: Final = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
CHANGES: Final = os.WEXITED | os.WSTOPPED | os.WCONTINUED
ORDERS: Final = {Step.END: END, Step.CANCEL: CANCEL, Step.QUIT: QUIT}
NOT_KNOWN: Final = 255  # the exit code of a process that somebody else reaped


@dataclass(slots=True)
class Child:
    """A forked process: a worker (see ``HostedWorker``), maintenance, exporter."""

    how_fenced: ClassVar[str] = "killing it"

    pid: int
    order_pipe: int  # its writing end
    entry_number: int  # in the process table; less than 0 for the other processes
    born: float  # time.monotonic()
    generation: int = 0  # of the plan that it was started for
    quarantined: bool = False
    paused_since: float | None = None  # by SIGSTOP
    fenced: str = ""  # killed for this problem with its lease
    is_killed: bool = False
    is_recycled: bool = False  # it works until its successor does
    is_ending: bool = False  # it counts no more: its successor may start
    hang: Hang | None = None  # killed because a handler holds the interpreter's lock
    closed_checks: int = 0  # in a row, that found the pipe's other end closed
    runs_another_program: bool = False  # killed because it runs another program

    @property
    def name(self) -> str:
        """As the admin shows it."""
        return identity.name_of(self.pid)

    def drain(self) -> None:
        """Have it claim nothing more."""
        self.order(DRAIN)

    def resume(self) -> None:
        """Have it claim again, unless it is ending."""
        self.order(RESUME)

    def take(self, step: Step) -> None:
        """Have it take a step of a stop."""
        if step is Step.KILL:
            self.kill()
        else:
            self.order(ORDERS[step])

    def fence(self, problem: str) -> None:
        """Kill it, since others may start its jobs any moment."""
        self.fenced = problem
        self.kill()

    def order(self, order: bytes) -> None:
        """Write to the pipe."""
        with contextlib.suppress(OSError):  # it has ended, and will be reaped
            os.write(self.order_pipe, order)

    def has_open_pipe(self) -> bool:
        """True if anybody has the other end of the pipe open. After ``os.exec*()`` in a
        handler nobody has: its process goes on, as another program. A process that ends
        closes the pipe a moment before, so this needs two looks to be sure."""
        poller = select.poll()
        poller.register(self.order_pipe, 0)  # errors are always reported
        self.closed_checks = self.closed_checks + 1 if poller.poll(0) else 0
        return self.closed_checks < 2

    def is_paused_for(self, seconds: float, now: float) -> bool:
        """True if it was stopped (SIGSTOP) longer ago than this."""
        return self.paused_since is not None and now - self.paused_since > seconds

    def poll_state(self) -> os.waitid_result | None:
        """The change of its state, if there is one. A process that has ended keeps its
        pid, so that no other process gets it, until it is reaped.
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
        """Release its pid and its pipe after its end."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG)
        os.close(self.order_pipe)

    def wait_for_exit(self, seconds: float) -> int | None:
        """Its exit code, if it ends within this time."""
        deadline = time.monotonic() + seconds
        while (seen := self.poll_state()) is None or seen.si_code not in ENDS:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.005)
        return exit_code(seen)

    def kill(self) -> None:
        """Kill it, together with the programs that its handlers started, except those
        in a session or a process group of their own."""
        self.is_killed = True
        for end in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                end(self.pid, signal.SIGKILL)


def fork(
    entry_number: int,
    live: Callable[[int], int],
    inherited: Iterable[int],
    *,
    is_verbose: bool = True,
) -> Child:
    """Fork a process that calls ``live`` with the reading end of a pipe, and exits with
    the code that it returns. If ``live`` fails, the process logs the traceback, as an
    error only if ``is_verbose``.

    ``inherited`` are the ends of other children's pipes. Their closing tells that the
    supervisor died, so a child must not hold them open. Raises OSError.
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
                logging.ERROR if is_verbose else logging.DEBUG,
                "A process of runworkers failed",
                exc_info=True,
            )
        finally:
            _exit(code)
    os.close(reader)
    return Child(pid, writer, entry_number, time.monotonic())


def how_it_ended(code: int, *, orderly: bool) -> str:
    """An exit code in words; a negative one is a signal.

    Only an orderly end has one of our own codes: a handler may exit with any.
    """
    if code < 0:
        try:
            return f"killed by signal {-code} ({signal.Signals(-code).name})"
        except ValueError:
            return f"killed by signal {-code}"
    words = {
        ENDED: "ended",
        RELEASED: "stopped with jobs unfinished",
        REPLACE: "replaced, because a job did not stop",
    }
    other = f"exited with code {code}"
    return words.get(code, other) if orderly else other


def how_it_died(child: Child, entry: ProcessEntry, code: int) -> str | None:
    """The label of a worker's death in metrics; None if it ended in good order."""
    if child.fenced:
        return "lapsed"
    is_replaced = bool(entry.orderly) and code == REPLACE
    if child.hang is not None or child.runs_another_program or is_replaced:
        return "unresponsive"
    if code < 0:
        return "killed"
    return None if entry.orderly else "exited"


def exit_code(seen: os.waitid_result) -> int:
    """The exit code of a process that has ended; negative for a signal."""
    ended = seen.si_code == os.CLD_EXITED
    return seen.si_status if ended else -seen.si_status


def _exit(code: int) -> None:
    """End this process, whatever fails: otherwise it would go on as a second
    supervisor."""
    try:
        logging.shutdown()
        forking.flush_output()
    finally:
        os._exit(code)
