"""Scans the lanes, and says when to scan again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from typing import Final

from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.lanes import Head
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.known_lanes import Lanes
from django_jobqueue.workers.claiming.next_step import SCAN_EVERY
from django_jobqueue.workers.claiming.slow_scans import SLOW, SlowScans

SCAN_SHARE: Final = 0.05  # of the worker's time, where claims ask few of many lanes
FULL_SCAN_SHARE: Final = 0.05  # of the worker's time
SCAN_OF_LANE: Final = 0.00002  # seconds that a scan from the marks takes for each
LONGEST_SAVED: Final = 0.1  # seconds of a share that are kept for later
LONG_SCAN: Final = 0.05  # seconds; of scans of very many lanes, what is longer has a
LONG_SCAN_SHARE: Final = 0.2  # share of the time of whoever scans


class TimeShare:
    """Lets something be done in a share of the time, however long each takes."""

    def __init__(self, share: float, *, free: float = 0.0) -> None:
        """Of each, the first ``free`` seconds do not count."""
        self._share = share
        self._free = free
        self._left = LONGEST_SAVED  # seconds
        self._at = time.monotonic()

    def may_begin(self) -> bool:
        """True if there is time left for one."""
        self._pass_time()
        return self._left > 0

    def took(self, seconds: float) -> None:
        """Record one that took so many seconds."""
        self._left -= max(0.0, seconds - self._free)

    def begin(self) -> Callable[[], bool]:
        """Begin something that takes its time in steps; the function says whether there
        is time left for another one."""
        last = time.monotonic()

        def may_go_on() -> bool:
            nonlocal last
            now = time.monotonic()
            self.took(now - last)
            last = now
            return self.may_begin()

        return may_go_on

    @property
    def seconds_until_free(self) -> float:
        """Until there is time for one."""
        self._pass_time()
        return max(0.0, -self._left / self._share)

    def _pass_time(self) -> None:
        now = time.monotonic()
        self._left = min(LONGEST_SAVED, self._left + (now - self._at) * self._share)
        self._at = now


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
            if seconds > SLOW:
                self._slow_scans.took(seconds, pause=seconds / FULL_SCAN_SHARE)
        self._known.learn(heads, empty)
        return heads
