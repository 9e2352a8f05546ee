"""Finds worker processes that hang because a handler holds the interpreter's lock, and
which handler does."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.processes import identity
from django_jobqueue.processes.attempt_table import RunningAttempt

# Seconds that a process may be silent beyond CANCEL_GRACE. Its watchdog looks four
# times a second, but may be late on an overloaded machine.
MARGIN: Final = 2.0
SILENT: Final = 0.5  # seconds after which the CPU time of its threads is measured
HOLDS: Final = 0.1  # seconds of CPU that the holder of the lock uses at least meanwhile
MORE: Final = 4  # times as much as all others together
NAMED: Final = 500  # jobs in one report, which has to fit into a pipe


class Hang(NamedTuple):
    """The jobs to blame for a process that hangs and is killed for it."""

    timed_out: Sequence[UUID] = ()  # jobs that ran longer than their timeout
    suspects: Sequence[UUID] = ()  # one of which kept others from theirs

    def among(self, running: Iterable[RunningAttempt]) -> Hang:
        """Only the jobs that still ran when the process died."""
        jobs = {attempt.job for attempt in running}
        return Hang(
            [job for job in self.timed_out if job in jobs][:NAMED],
            [job for job in self.suspects if job in jobs][:NAMED],
        )


def is_silent(watched: float) -> bool:
    """True if the last look of a watchdog, by time.monotonic(), is too long ago."""
    return time.monotonic() - watched > conf.cancel_grace + MARGIN


@dataclass(slots=True)
class _Silence:
    """The observations of a process whose watchdog does not run."""

    since: float  # time.monotonic() of the first look that saw it
    last: float  # and of the last one
    used: Mapping[int, float]  # CPU at the first one, by thread


class HangWatch:
    """Judges by the attempt tables. A process whose watchdog runs enforces its timeouts
    itself.

    It has to watch a process be silent for a while: after the whole machine stood
    still, every watchdog's last look is long ago.
    """

    def __init__(self) -> None:
        self._silences: dict[int, _Silence] = {}  # by process

    def judge(
        self, pid: int, running: list[RunningAttempt], watched: float, now: float
    ) -> Hang | None:
        """True to kill this process; ``watched`` is when its watchdog last looked.
        Both times are time.monotonic()."""
        overdue = [attempt for attempt in running if attempt.deadline < now]
        first = min((attempt.deadline for attempt in overdue), default=now)
        silence = now - max(watched, first)
        if silence < SILENT:
            self.forget(pid)
            return None
        seen = self._silences.get(pid)
        if seen is None or now - seen.last > MARGIN:
            used = cpu_seconds(pid, running)
            seen = self._silences[pid] = _Silence(now, now, used)
        seen.last = now
        if silence <= conf.cancel_grace + MARGIN or now - seen.since < MARGIN:
            return None
        return self._judge(pid, running, overdue, seen, silence)

    def _judge(
        self,
        pid: int,
        running: list[RunningAttempt],
        overdue: list[RunningAttempt],
        seen: _Silence,
        silence: float,
    ) -> Hang | None:
        """Blame the holder of the lock, if it is clear."""
        holder = _holder(seen.used, cpu_seconds(pid, running))
        theirs = [attempt for attempt in running if attempt.thread == holder]
        guilty = [attempt for attempt in theirs or overdue if attempt in overdue]
        if guilty:
            return Hang(timed_out=[attempt.job for attempt in guilty])
        if silence <= conf.cancel_grace + conf.grace:
            return None  # it has time left, as beside a handler that does not stop
        return Hang(suspects=[attempt.job for attempt in theirs])

    def forget(self, pid: int) -> None:
        """This process has ended, or is not silent."""
        self._silences.pop(pid, None)


def cpu_seconds(pid: int, running: Iterable[RunningAttempt]) -> dict[int, float]:
    """The seconds of CPU of each thread with an attempt; empty where /proc does not
    show them."""
    threads = {attempt.thread for attempt in running}
    used = {thread: identity.cpu_seconds(pid, thread) for thread in threads}
    return {thread: seconds for thread, seconds in used.items() if seconds is not None}


def _holder(before: Mapping[int, float], after: Mapping[int, float]) -> int | None:
    """The thread that computed while no other could, if it is clear which."""
    used = {thread: after[thread] - before.get(thread, 0.0) for thread in after}
    if not used:
        return None
    most = max(used, key=used.__getitem__)
    others = sum(used.values()) - used[most]
    return most if used[most] >= max(HOLDS, MORE * others) else None
