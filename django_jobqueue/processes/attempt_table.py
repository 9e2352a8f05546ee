"""Shows the supervisor which attempts run in a worker process."""

from __future__ import annotations

import itertools
import math
import struct
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Self
from uuid import UUID

from django_jobqueue.processes.shared_memory import shared_parts

if TYPE_CHECKING:
    from django_jobqueue.execution.attempt import Attempt

_ROW: Final = struct.Struct("@q16sd")  # only to read: see process_table.py
_USED: Final = 8  # bytes before the rows: how many of them this worker has used
_THREAD_END: Final = 8
_JOB_END: Final = 24
_NEVER: Final = math.inf


class RunningAttempt(NamedTuple):
    """An attempt, as other processes see it."""

    job: UUID
    thread: int  # the system's number of the thread that it runs in
    deadline: float  # time.monotonic(); infinity is none


class Row:
    """Room for one attempt at a time."""

    __slots__ = ("_deadline", "_job", "_memory")

    def __init__(self, memory: memoryview, at: int, thread: int) -> None:
        words = memory[at : at + _ROW.size]
        words[:_THREAD_END].cast("q")[0] = thread
        self._deadline = words[_JOB_END:].cast("d")
        self._memory = memory
        self._job = slice(at + _THREAD_END, at + _JOB_END)

    def enter(self, attempt: Attempt) -> None:
        """This attempt is about to start; every one does this, in 0.2 µs."""
        timeout, deadline = attempt.timeout, self._deadline
        deadline[0] = 0.0  # nobody sees this job with the deadline of the one before
        # By id.bytes it takes half as long again.
        self._memory[self._job] = attempt.job.id.int.to_bytes(16)
        deadline[0] = _NEVER if timeout is None else time.monotonic() + timeout

    def leave(self) -> None:
        """Nothing runs here, or what did has ended."""
        self._deadline[0] = 0.0


class AttemptTable:
    """A table in memory that forked processes share: the worker writes, before the
    handler starts; the supervisor reads.

    A handler that holds the interpreter's lock lets nobody in its process see the clock
    or tell of it.
    """

    def __init__(self, size: int, memory: memoryview | None = None) -> None:
        self._size = size
        if memory is None:
            (memory,) = shared_parts(1, _bytes(size))
        self._memory = memory
        self._used = memory[:_USED].cast("q")
        self._numbers = itertools.count()  # of the worker

    @classmethod
    def several(cls, count: int, size: int) -> list[Self]:
        """So many tables of this size."""
        return [cls(size, memory) for memory in shared_parts(count, _bytes(size))]

    def row(self, thread: int) -> Row:
        """A row for attempts in this thread; beyond the size one that nobody sees."""
        number = next(self._numbers)
        if number >= self._size:
            return Row(memoryview(bytearray(_ROW.size)), 0, thread)
        self._used[0] = number + 1
        return Row(self._memory, _USED + number * _ROW.size, thread)

    def clear(self) -> None:
        """Nothing runs: another worker is to have it."""
        end = self._end
        self._memory[:end] = bytes(end)

    def running(self) -> list[RunningAttempt]:
        """The attempts that run now; after the process has died, those that ran
        then."""
        rows = _ROW.iter_unpack(self._memory[_USED : self._end])
        return [
            RunningAttempt(UUID(bytes=job), thread, deadline)
            for thread, job, deadline in rows
            if deadline
        ]

    @property
    def _end(self) -> int:
        """The end of what was used: no more memory than that is touched."""
        return _USED + self._used[0] * _ROW.size


def _bytes(size: int) -> int:
    """Of a table with so many rows."""
    return _USED + size * _ROW.size
