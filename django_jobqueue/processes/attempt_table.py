"""Shows the supervisor which attempts run in a worker process."""

from __future__ import annotations

import itertools
import math
import mmap
import struct
import time
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from django_jobqueue.execution.attempt import Attempt

_USED: Final = struct.Struct("@q")  # rows that this worker has used, before them
_ROW: Final = struct.Struct("@q16sd")
_THREAD: Final = struct.Struct("@q")
_ATTEMPT: Final = struct.Struct("@16sd")
_DEADLINE: Final = struct.Struct("@d")
_NEVER: Final = math.inf
_write_attempt, _write_deadline = _ATTEMPT.pack_into, _DEADLINE.pack_into


class RunningAttempt(NamedTuple):
    """An attempt, as other processes see it."""

    job: UUID
    thread: int  # the system's number of the thread that it runs in
    deadline: float  # time.monotonic(); infinity is none


class Row:
    """Room for one attempt at a time."""

    __slots__ = ("_at", "_deadline_at", "_memory")

    def __init__(self, memory: mmap.mmap | bytearray, at: int, thread: int) -> None:
        _THREAD.pack_into(memory, at, thread)
        self._memory = memory
        self._at = at + _THREAD.size
        self._deadline_at = at + _ROW.size - _DEADLINE.size

    def enter(self, attempt: Attempt) -> None:
        """This attempt is about to start; every one does this, in 0.3 µs."""
        timeout = attempt.timeout
        deadline = _NEVER if timeout is None else time.monotonic() + timeout
        job = attempt.job.id.int.to_bytes(16)  # by id.bytes it takes half as long again
        _write_attempt(self._memory, self._at, job, deadline)

    def leave(self) -> None:
        """Nothing runs here, or what did has ended."""
        _write_deadline(self._memory, self._deadline_at, 0.0)


class AttemptTable:
    """A table in memory that forked processes share: the worker writes, before the
    handler starts; the supervisor reads.

    A handler that holds the interpreter's lock lets nobody in its process see the clock
    or tell of it.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = mmap.mmap(-1, _USED.size + size * _ROW.size)
        self._numbers = itertools.count()  # of the worker

    def row(self, thread: int) -> Row:
        """A row for attempts in this thread; beyond the size one that nobody sees."""
        number = next(self._numbers)
        if number >= self._size:
            return Row(bytearray(_ROW.size), 0, thread)
        _USED.pack_into(self._memory, 0, number + 1)
        return Row(self._memory, _USED.size + number * _ROW.size, thread)

    def clear(self) -> None:
        """Nothing runs: another worker is to have it."""
        end = self._end
        self._memory[:end] = bytes(end)

    def running(self) -> list[RunningAttempt]:
        """The attempts that run now; after the process has died, those that ran
        then."""
        rows = _ROW.iter_unpack(self._memory[_USED.size : self._end])
        return [
            RunningAttempt(UUID(bytes=job), thread, deadline)
            for thread, job, deadline in rows
            if deadline
        ]

    @property
    def _end(self) -> int:
        """The end of what was used: no more memory than that is touched."""
        used = int(_USED.unpack_from(self._memory, 0)[0])
        return _USED.size + used * _ROW.size
