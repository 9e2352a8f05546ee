"""How far the claims have come in each lane, as the processes of a host share it.

With a mark of its own, each process would pass in the index all jobs that the others
have claimed since its last claim: of eight processes, eight times as many as it claims.
"""

from __future__ import annotations

import time
from array import array
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.processes.shared_memory import shared_parts
from django_jobqueue.store.queue.lanes import START, Mark
from django_jobqueue.store.rows import Lane

REREAD: Final = 2_000  # jobs before the mark that a scan reads again, or twice as many
PLACES: Final = 4_096  # for lanes; what nobody writes on is not allocated

_HEAD: Final = 8  # words before the places
_PLACE: Final = 16  # words: a checksum, three marks of three words each, and a number
_USED: Final = 11  # of these
_WORD: Final = 8  # bytes
_ALL_BITS: Final = (1 << 64) - 1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class LaneProgress(NamedTuple):
    """Up to where the jobs of a lane were claimed."""

    mark: Mark = START  # the position of the last claim, or of the first job
    before: Mark = START  # the mark as it was at least REREAD jobs ago
    next_before: Mark = START  # the mark as it was less than that ago
    passed: int = 0  # jobs since then

    def moved(self, mark: Mark, jobs: int = 0) -> LaneProgress:
        """The same after a claim of so many jobs that came to this mark; never back."""
        if self.mark == START:
            return LaneProgress(mark, mark, mark, jobs)
        mark, passed = max(self.mark, mark), self.passed + jobs
        if passed < REREAD:
            return LaneProgress(mark, self.before, self.next_before, passed)
        return LaneProgress(mark, self.next_before, mark)


class SharedLaneProgress:
    """The progress of lanes, in memory that forked processes share.

    It only says where reading is in vain, so nothing is locked: each process writes
    what it knows, and the last one holds. What is torn, or of another lane that has the
    same place, has another checksum, and is not there. A mark that is too far costs
    time until the next full scan.
    """

    def __init__(self) -> None:
        (memory,) = shared_parts(1, _WORD * (_HEAD + PLACES * _PLACE))
        self._full_scan_at = memory[:_WORD].cast("d")
        self._words = memory.cast("Q")

    @property
    def full_scan_at(self) -> float:
        """time.monotonic() when the last full scan of this host began."""
        return self._full_scan_at[0]

    def full_scan_begins(self) -> None:
        """This process makes one, for all."""
        self._full_scan_at[0] = time.monotonic()

    def checksum(self, lane: Lane) -> int:
        """The checksum of what is written of this lane, or of another one; 0 if there
        is nothing. Cheap, to see whether anything is new."""
        return self._words[self._first(lane)]

    def read(self, lane: Lane) -> LaneProgress | None:
        """The last entry of this lane; None if it is lost."""
        first = self._first(lane)
        checksum, *words = self._words[first : first + _USED].tolist()
        if checksum != _checksum(lane, words):
            return None
        mark, before, next_before = [_mark(*words[at : at + 3]) for at in (0, 3, 6)]
        return LaneProgress(mark, before, next_before, words[-1])

    def write(self, lane: Lane, progress: LaneProgress) -> int:
        """Let the other processes know. Returns the checksum."""
        marks = progress.mark, progress.before, progress.next_before
        words = [*chain.from_iterable(map(_words, marks)), progress.passed]
        first, checksum = self._first(lane), _checksum(lane, words)
        self._words[first : first + _USED] = array("Q", [checksum, *words])
        return checksum

    def _first(self, lane: Lane) -> int:
        return _HEAD + hash(lane) % PLACES * _PLACE


def _checksum(lane: Lane, words: list[int]) -> int:
    """The same in all processes of a host, since they were forked."""
    return hash((lane, *words)) & _ALL_BITS


def _words(mark: Mark) -> tuple[int, int, int]:
    moment, id = (mark[0] - _EPOCH) // _MICROSECOND, mark[1].int
    return moment & _ALL_BITS, id >> 64, id & _ALL_BITS


def _mark(moment: int, high: int, low: int) -> Mark:
    if moment >> 63:
        moment -= 1 << 64  # before 1970
    return _EPOCH + moment * _MICROSECOND, UUID(int=high << 64 | low)
