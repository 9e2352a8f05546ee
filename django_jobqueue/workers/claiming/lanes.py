"""What a claimer remembers of the lanes: which there are, how far each is claimed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django_jobqueue.store.queue.lane_marks import START, LaneMark, Mark
from django_jobqueue.store.queue.lanes import Head
from django_jobqueue.store.rows import ClaimedJob, Lane

BACK: Final = 2_000  # jobs
MANY: Final = 256  # lanes
KEPT: Final = 600.0  # seconds


@dataclass(slots=True)
class KnownLane:
    """A lane that had jobs."""

    lane: Lane
    mark: Mark = START  # the position of the last claim, or of the first job
    due: bool = True  # believed to have jobs to run now
    served: int = 0  # when it last gave a job, as a count
    used: float = 0.0  # when jobs were last seen there, by time.monotonic()
    _back: Mark = START  # the mark as it was at least so many jobs ago
    _turn: Mark = START  # and less than that
    _passed: int = 0  # jobs since then

    def put(self, mark: Mark, jobs: int = 0) -> None:
        """Move the mark, past so many jobs."""
        if self.mark == START:
            self._back = self._turn = mark
        self.mark = mark
        self._passed += jobs
        if self._passed >= BACK:
            self._back, self._turn, self._passed = self._turn, mark, 0

    @property
    def start(self) -> LaneMark:
        """Where a scan starts."""
        return LaneMark(self.lane, self.mark, min(self._back, self.mark))


class Lanes:
    """The known lanes: queues × priorities × job types.

    One that is empty costs a claim a few microseconds, so it is forgotten only where
    there are many, as with a queue for each tenant, and it has been empty for long. The
    next look finds it again as soon as it has a job.
    """

    def __init__(self) -> None:
        self._known: dict[Lane, KnownLane] = {}
        self._served = 0

    def __iter__(self) -> Iterator[KnownLane]:
        return iter(self._known.values())

    def marks(self, *, full_scan: bool) -> list[LaneMark]:
        """All lanes as a look takes them: from their marks on, or a whole sweep."""
        if full_scan:
            return [LaneMark(lane) for lane in self._known]
        return [known.start for known in self._known.values()]

    def looked(self, heads: Iterable[Head]) -> None:
        """Learn from a look at all lanes: which are due, and where each begins."""
        now = time.monotonic()
        for head in heads:
            known = self._known.setdefault(head.lane, KnownLane(head.lane, used=now))
            known.due = head.is_due
            known.put(head.mark)
            if head.due_in is not None:
                known.used = now
        if len(self._known) > MANY:
            self._forget(now - KEPT)

    def _forget(self, since: float) -> None:
        """Keep those that were used since, and as many others as may be."""
        unused = [known for known in self._known.values() if known.used < since]
        unused.sort(key=lambda known: known.used)
        for known in unused[: len(self._known) - MANY]:
            del self._known[known.lane]

    def in_turn(self, wanted: Callable[[Lane], bool]) -> list[KnownLane]:
        """The wanted lanes in the order of a claim: by priority, greatest first; within
        one priority the one that was served longest ago, so that job types take
        turns."""
        chosen = [known for known in self._known.values() if wanted(known.lane)]
        chosen.sort(key=lambda known: (-known.lane.priority, known.served))
        return chosen

    def claimed(
        self, asked: Sequence[KnownLane], jobs: Sequence[ClaimedJob], *, full: bool
    ) -> KnownLane | None:
        """Learn from a claim on these lanes, in this order; return where it stopped.

        The jobs are in the order of their lanes and their positions there.

        ``full``: it was ended by its limit, so the last lane that gave a job may have
        more.
        """
        if len(asked) > 1:
            ends = {job.lane: number for number, job in enumerate(jobs, 1)}
        else:
            ends = {known.lane: len(jobs) for known in asked if jobs}
        gave = [index for index, known in enumerate(asked) if known.lane in ends]
        stop = gave[-1] if full and gave else len(asked)
        begin = 0
        for index, known in enumerate(asked):
            if index < stop:
                known.due = False
            if known.lane in ends:
                end = ends[known.lane]
                self._served += 1
                known.served = self._served
                known.used = time.monotonic()
                mark = (jobs[end - 1].run_after, jobs[end - 1].id)
                exhausted = index < stop
                known.put(max(known.mark, mark) if exhausted else mark, end - begin)
                begin = end
        if stop == len(asked):
            return None
        asked[stop].due = True
        return asked[stop]
