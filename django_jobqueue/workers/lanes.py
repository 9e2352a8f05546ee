"""What a claimer remembers of the lanes: which there are, how far each is claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django_jobqueue.store.claim import START, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane


@dataclass(slots=True)
class Known:
    """A lane that had jobs."""

    lane: Lane
    mark: Mark = START  # the position of the last claim
    due: bool = True  # believed to have jobs to run now
    served: int = 0  # when it last gave a job, as a count


class Lanes:
    """The known lanes. Never forgets one: their number is that of queues × priorities ×
    job types in use, and an empty one costs a claim a few microseconds."""

    def __init__(self) -> None:
        self._known: dict[Lane, Known] = {}
        self._served = 0

    def __iter__(self) -> Iterator[Lane]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def add(self, lanes: Iterable[Lane]) -> None:
        """Take note of lanes that have jobs."""
        for lane in lanes:
            self._known.setdefault(lane, Known(lane)).due = True

    def in_turn(self, wanted: Callable[[Lane], bool]) -> list[Known]:
        """The wanted lanes in the order of a claim: by priority, greatest first; within
        one priority the one that was served longest ago, so that job types take
        turns."""
        chosen = [known for known in self._known.values() if wanted(known.lane)]
        chosen.sort(key=lambda known: (-known.lane.priority, known.served))
        return chosen

    def claimed(
        self,
        asked: Sequence[Known],
        jobs: Sequence[ClaimedJob],
        *,
        full: bool,
        swept: bool,
    ) -> Known | None:
        """Learn from a claim on these lanes, in this order; return where it stopped.

        The jobs are in the order of their lanes and their positions there.

        ``full``: it was ended by its limit, so the last lane that gave a job may have
        more. ``swept``: it ignored the marks.
        """
        last = {job.lane: job for job in (jobs if len(asked) > 1 else jobs[-1:])}
        gave = [index for index, known in enumerate(asked) if known.lane in last]
        stop = gave[-1] if full and gave else len(asked)
        for index, known in enumerate(asked):
            if index < stop:
                known.due = False
            if known.lane in last:
                self._served += 1
                known.served = self._served
                mark = (last[known.lane].run_after, last[known.lane].id)
                exhausted = swept and index < stop
                known.mark = max(known.mark, mark) if exhausted else mark
        if stop == len(asked):
            return None
        asked[stop].due = True
        return asked[stop]

    def due(self, lanes: Iterable[Lane]) -> None:
        """Believe what a look told: these lanes have jobs to run now, others not."""
        found = set(lanes)
        for lane, known in self._known.items():
            known.due = lane in found


def marks(lanes: Iterable[Known], *, sweep: bool) -> list[LaneMark]:
    """The lanes as the claim takes them; a sweep starts at the beginning of each."""
    return [LaneMark(k.lane, START if sweep else k.mark) for k in lanes]
