"""Knows which lanes have jobs now or later: scans them, and remembers the result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from django_jobqueue.processes.lane_progress import LaneProgress, SharedLaneProgress
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.keyed_turn import KeyTurns
from django_jobqueue.store.queue.lanes import START, Head, LaneMark, Mark
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.workers.claiming.lane_order import LaneOrder
from django_jobqueue.workers.claiming.next_step import SCAN_EVERY
from django_jobqueue.workers.claiming.slow_scans import SlowScans
from django_jobqueue.workers.claiming.time_share import (
    LONG_SCAN,
    LONG_SCAN_SHARE,
    TimeShare,
)

MANY: Final = 64  # lanes; with more, claims ask only those that are due
MOST_EMPTY: Final = 256  # lanes; with more, the empty ones are forgotten
FORGET_AFTER: Final = 600.0  # seconds
SCAN_SHARE: Final = 0.05  # of the worker's time, where claims ask few of many lanes
FULL_SCAN_SHARE: Final = 0.05  # of the worker's time
SCAN_OF_LANE: Final = 0.00002  # seconds that a scan from the marks takes for each


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
        self._order = order or LaneOrder()

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


class FullScans:
    """Gives full scans a small share of the time, however long each takes.

    A job may turn up behind a mark: it was released, or its transaction was open for
    long. A full scan reads each lane from its beginning, finds that job, and passes all
    dead index entries: there may be a million while a transaction stays open. While the
    processes of a host are busy, one makes the scan for all.
    """

    def __init__(self, shared: SharedLaneProgress | None = None) -> None:
        self._shared = shared
        self._is_wanted = True
        self._wanted_at = time.monotonic()
        self._time = TimeShare(FULL_SCAN_SHARE)

    def want(self) -> None:
        """There may be jobs behind a mark."""
        self._is_wanted, self._wanted_at = True, time.monotonic()

    def begins(self) -> None:
        """Record that one begins."""
        self._is_wanted = False
        if self._shared is not None:
            self._shared.full_scan_begins()

    @property
    def is_wanted(self) -> bool:
        """True if none has begun, in any process of the host, since one was wanted."""
        return self._is_wanted and self._shared_at <= self._wanted_at

    @property
    def is_due(self) -> bool:
        """True if a busy host needs one."""
        return self.is_wanted or time.monotonic() >= self._shared_at + SCAN_EVERY

    @property
    def _shared_at(self) -> float:
        return -math.inf if self._shared is None else self._shared.full_scan_at

    def may_begin(self) -> bool:
        """True if there is time left for one."""
        return self._time.may_begin()

    def took(self, seconds: float, *, instead_of: float = 0.0) -> None:
        """Record a full scan that took this many seconds, where a scan from the marks
        takes about so many: with many empty lanes more."""
        self._time.took(max(0.0, seconds - instead_of))


class LaneScanner:
    """Scans the lanes, and knows when to scan again."""

    def __init__(
        self,
        connection: OwnConnection,
        known: Lanes,
        queues: Collection[str] | None = None,
    ) -> None:
        """``queues`` are those of the worker; None is every one."""
        self.next_at = 0.0  # time.monotonic(), while busy
        self._within = lanes.of_queues(queues)
        self._connection = connection
        self._known = known
        self.scanned_at = -math.inf  # time.monotonic()
        self.full_scans = FullScans(known.shared)
        self._slow_scans = SlowScans(connection)
        self.long_scans = TimeShare(LONG_SCAN_SHARE, free=LONG_SCAN)
        self.job_due_at = math.inf  # time.monotonic(), of the first future job

    def want_full_scan(self) -> None:
        """There may be jobs behind a mark."""
        self.full_scans.want()

    @property
    def due_at(self) -> float:
        """When to scan even while claims from known lanes find jobs."""
        is_due = self.full_scans.is_wanted and self.full_scans.may_begin()
        return -math.inf if is_due else self.next_at

    @property
    def pause(self) -> float:
        """Seconds until there is time for another scan, after long ones of very many
        lanes: 20,000 take 0.36 s, half of it here and half in the database."""
        return self.long_scans.seconds_until_free if self._known.are_many else 0.0

    def probe(self) -> None:
        """Learn which of the known lanes have a job to run now; of many, by a full scan
        if there is time, which passes the empty ones at once. Raises
        StoreUnavailable."""
        if self._known.are_many and self.full_scans.may_begin():
            self.scan()
            return
        began = time.monotonic()
        marks = self._known.marks()
        self._known.learn(lanes.probe(self._connection, marks))
        self._took(time.monotonic() - began)

    def scan(self, *, busy: bool = False) -> list[Lane]:
        """The lanes that have a job to run now. Raises StoreUnavailable."""
        full_scans, began = self.full_scans, time.monotonic()
        wanted = full_scans.is_due or self._known.are_many or not busy
        is_full = wanted and full_scans.may_begin()
        if is_full:
            heads = self._full_scan()
        else:
            heads = lanes.scan(self._connection, self._known.marks(), self._within)
            self._known.learn(heads)
        self.scanned_at = now = time.monotonic()
        self._took(now - began, is_full=is_full)
        pause = (now - began) / SCAN_SHARE if self._known.are_many else SCAN_EVERY
        self.next_at = now + min(pause, SCAN_EVERY)
        later = (head.due_in for head in heads if head.due_in and not head.is_due)
        self.job_due_at = now + min(later, default=math.inf)
        return [head.lane for head in heads if head.is_due]

    def _took(self, seconds: float, *, is_full: bool = False) -> None:
        if is_full:  # that of dead entries is counted among the full scans
            seconds = min(seconds, len(self._known) * SCAN_OF_LANE)
        self.long_scans.took(seconds)

    def _full_scan(self) -> list[Head]:
        """Read each lane from its beginning. A full scan that fails has taken its time
        as well, and is still wanted: after one that the server cut off at 15 s, the
        next must wait for its share."""
        began = time.monotonic()
        self.full_scans.begins()  # first: it may be asked for meanwhile
        if not self._known.are_many:  # to hear of all would take longer than the scan
            self._known.marks()
        try:
            heads, empty = lanes.full_scan(self._connection, self._within)
        except BaseException:
            self.full_scans.want()
            raise
        finally:
            instead_of = len(self._known) * SCAN_OF_LANE
            seconds = time.monotonic() - began
            self.full_scans.took(seconds, instead_of=instead_of)
            self._slow_scans.took(seconds, pause=seconds / FULL_SCAN_SHARE)
        self._known.learn(heads, empty)
        return heads
