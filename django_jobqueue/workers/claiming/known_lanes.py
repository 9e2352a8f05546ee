"""The lanes that a worker knows: which have jobs now, and where each begins."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django_jobqueue.processes.lane_progress import LaneProgress, SharedLaneProgress
from django_jobqueue.store.queue.keyed_turn import KeyTurns
from django_jobqueue.store.queue.lanes import START, Head, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane

if TYPE_CHECKING:
    from django_jobqueue.workers.claiming.lane_order import LaneOrder

MANY: Final = 64  # lanes; with more, claims ask only those that are due
MOST_EMPTY: Final = 256  # lanes; with more, the empty ones are forgotten
FORGET_AFTER: Final = 600.0  # seconds


@dataclass(slots=True)
class KnownLane:
    """A lane that had jobs."""

    lane: Lane
    progress: LaneProgress = LaneProgress()
    before_cursor: Mark | None = None  # there are jobs from here on, before the mark
    last_claim_mark: Mark = START  # when it was last asked for jobs
    due: bool = True  # believed to have jobs to run now
    served: int = 0  # when it last gave a job, as a count
    keys: KeyTurns = field(default_factory=KeyTurns)  # if its type has a limit by key
    used: float = 0.0  # when jobs were last seen there, by time.monotonic()
    heard: int = 0  # the checksum of what was shared of it last

    @property
    def first(self) -> Mark:
        """The position of the first job, as far as is known."""
        return self.progress.mark if self.before_cursor is None else self.before_cursor

    def start(self) -> LaneMark:
        """Where a scan or a claim starts that begins now."""
        self.last_claim_mark = self.progress.mark
        if self.before_cursor is not None:
            return LaneMark(self.lane, self.before_cursor, self.before_cursor)
        return LaneMark(self.lane, self.progress.mark, self.progress.before)

    def begins(self, mark: Mark, *, is_due: bool) -> None:
        """A scan found the first job here, if it ``is_due``, or that there is none
        before."""
        self.before_cursor, self.due = None, is_due
        if mark >= self.last_claim_mark:
            self.progress = self.progress.moved(mark)
        elif is_due:
            self.before_cursor = mark
        else:  # the clock of the database was set back
            self.progress = LaneProgress(mark)

    def record_claimed(self, jobs: int, mark: Mark, *, exhausted: bool) -> None:
        """A claim took so many jobs in order, the last one here. ``exhausted``: it
        found no more."""
        if mark >= self.last_claim_mark:
            self.before_cursor = None
        elif not exhausted or self.before_cursor is not None:
            self.before_cursor = mark
        self.progress = self.progress.moved(mark, jobs)


def by_priority(known: Any) -> tuple[int, int]:
    """Sorts lanes: the greatest priority first, then the one served longest ago, so
    that job types take turns."""
    return -known.lane.priority, known.served


class Lanes:
    """The known lanes: queues × priorities × job types.

    One that is empty costs a claim a few microseconds, and nothing where there are
    many, as with a queue for each tenant. So it is forgotten only where there are very
    many, and it has been empty for long. The next scan finds it again as soon as it has
    a job.
    """

    def __init__(
        self,
        order: LaneOrder | None = None,
        shared: SharedLaneProgress | None = None,
    ) -> None:
        self.shared = shared  # with the other processes of the host
        self._known: dict[Lane, KnownLane] = {}
        self._served = 0
        self._order = order  # None: by priority, then the one served longest ago

    def __iter__(self) -> Iterator[KnownLane]:
        return iter(self._known.values())

    def __len__(self) -> int:
        return len(self._known)

    def starts(self, lanes: Iterable[KnownLane]) -> list[LaneMark]:
        """Where a claim or a scan of these lanes starts that begins now."""
        starts = []
        for known in lanes:
            self._hear(known)
            starts.append(known.start())
        return starts

    @property
    def are_many(self) -> bool:
        """True if it would take long to ask them all."""
        return len(self._known) > MANY

    def marks(self) -> list[LaneMark]:
        """Where a scan of all lanes starts that begins now."""
        return self.starts(self._known.values())

    def learn(self, heads: Sequence[Head], empty: Mark | None = None) -> None:
        """Learn from a scan of all lanes: which are due, and where each begins.
        ``empty``: the mark of all that are not among them."""
        now, are_many = time.monotonic(), self.are_many
        for head in heads:
            known = self._known.get(head.lane)
            if known is None:
                known = self._known[head.lane] = KnownLane(head.lane, used=now)
                self.starts([known])
            elif are_many and empty is not None:
                self.starts([known])
            self._begins(known, head.mark, is_due=head.is_due)
            if head.due_in is not None:
                known.used = now
        if empty is not None:
            with_jobs = {head.lane for head in heads}
            for known in self._known.values():
                # Where one of many has a job, a scan says so before it is asked.
                if (known.due or not are_many) and known.lane not in with_jobs:
                    self._begins(known, empty, is_due=False)
        if len(self._known) > MOST_EMPTY:
            self._forget(now - FORGET_AFTER)

    def _begins(self, known: KnownLane, mark: Mark, *, is_due: bool) -> None:
        before = known.progress.mark
        known.begins(mark, is_due=is_due)
        if known.progress.mark < before:
            self._share(known)

    def _hear(self, known: KnownLane) -> None:
        """Take over what other processes know of this lane."""
        shared = self.shared
        if shared is None or known.heard == (now := shared.checksum(known.lane)):
            return
        known.heard = now
        known.progress = shared.read(known.lane) or known.progress

    def _share(self, known: KnownLane) -> None:
        if self.shared is not None:
            known.heard = self.shared.write(known.lane, known.progress)

    def _forget(self, since: float) -> None:
        """Keep those that were used since, and as many others as may be."""
        unused = [known for known in self._known.values() if known.used < since]
        unused.sort(key=lambda known: known.used)
        for known in unused[: len(self._known) - MOST_EMPTY]:
            del self._known[known.lane]

    def in_turn(
        self,
        wanted: Callable[[Lane], bool],
        *,
        due: bool = False,
        is_async: bool = False,
    ) -> list[KnownLane]:
        """The wanted lanes in the order of a claim for threads or async slots; ``due``:
        only those that are believed to have jobs."""
        lanes = self._known.values()
        chosen = [one for one in lanes if (one.due or not due) and wanted(one.lane)]
        if self._order is None:
            chosen.sort(key=by_priority)
        else:
            self._order.sort(chosen, is_async=is_async)
        return chosen

    def claimed(
        self,
        asked: Sequence[KnownLane],
        jobs: Sequence[ClaimedJob],
        *,
        full: bool,
        in_order: bool = True,
        is_async: bool = False,
    ) -> KnownLane | None:
        """Learn from a claim on these lanes, in this order; return where it stopped.

        The jobs are in the order of their lanes and their positions there.

        ``in_order``: each lane was read in order, so what is before these jobs is gone.
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
                if self._order is not None:
                    self._order.served(known.lane.queue, end - begin, is_async=is_async)
                known.used = time.monotonic()
                if in_order:
                    mark = (jobs[end - 1].run_after, jobs[end - 1].id)
                    self._hear(known)
                    known.record_claimed(end - begin, mark, exhausted=index < stop)
                    self._share(known)
                begin = end
        if stop == len(asked):
            return None
        asked[stop].due = True
        return asked[stop]
