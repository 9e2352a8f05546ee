"""The attempts that run in a worker process, where its supervisor sees them."""

from __future__ import annotations

import math
import mmap
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from django_jobqueue.workers.attempt import Attempt

# The deadline is last, and zeroed first: what has one is whole.
_ROW: Final = struct.Struct("@16sqd")
_DEADLINE: Final = struct.Struct("@d")
_AT: Final = _ROW.size - _DEADLINE.size


class RunningAttempt(NamedTuple):
    """An attempt, as other processes see it."""

    job: UUID
    thread: int  # the system's number of the thread that it runs in
    deadline: float  # time.monotonic(); infinity is none


class AttemptTable:
    """A table in memory that forked processes share: the worker writes, before the
    handler starts and after it ended; the supervisor reads.

    A handler that holds the interpreter's lock lets nobody in its process see the clock
    or tell of it. What does not fit in is not there.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._memory = mmap.mmap(-1, max(1, size * _ROW.size))
        self._free = deque(range(size))  # in the worker

    def enter(self, attempt: Attempt, thread: int) -> int | None:
        """An attempt is about to start in this thread; returns its row, to ``leave``.

        It costs half a microsecond, so that each can.
        """
        try:
            row = self._free.popleft()
        except IndexError:
            return None
        timeout = attempt.timeout
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        job = attempt.job.id.bytes
        _ROW.pack_into(self._memory, row * _ROW.size, job, thread, deadline)
        return row

    def leave(self, row: int | None) -> None:
        """It has ended."""
        if row is not None:
            _DEADLINE.pack_into(self._memory, row * _ROW.size + _AT, 0.0)
            self._free.append(row)

    def clear(self) -> None:
        """Nothing runs: another worker is to have it."""
        self._memory[:] = bytes(len(self._memory))

    def running(self) -> list[RunningAttempt]:
        """What runs now; after the process has died, what ran then."""
        rows = _ROW.iter_unpack(self._memory[: self._size * _ROW.size])
        return [
            RunningAttempt(UUID(bytes=job), *rest) for job, *rest in rows if rest[-1]
        ]
