"""Scans of the lanes for remote workers, which keep no marks of their own."""

from __future__ import annotations

import threading
import time
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.lanes import Head, Range
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.lane_scanner import (
    LONG_SCAN,
    LONG_SCAN_SHARE,
    TimeShare,
)

MOST: Final = 100  # whose lanes are remembered

Ranges = tuple[Range, ...]


class SeenLanes:
    """What was seen last of the lanes in some ranges."""

    def __init__(self) -> None:
        self.share = TimeShare(LONG_SCAN_SHARE, free=LONG_SCAN)
        self.heads: dict[Lane, Head] | None = None  # None before the first scan


class LaneScans:
    """What was seen last of the lanes in the same ranges, through this process.

    A scan takes its time for each lane, and others can make very many of them. Then
    claims go on with what was seen, until there is time for another one. Any thread may
    ask: one that was given what was seen keeps it, whatever is forgotten meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: dict[Ranges, SeenLanes] = {}

    def heads(self, db: Database, within: Ranges) -> list[Head]:
        """The lanes with jobs in these ranges, and where they begin."""
        seen = self._of(within)
        heads = seen.heads
        if heads is None or seen.share.may_begin():
            began = time.monotonic()
            scanned = lanes.scan(db, [], within)
            seen.heads = heads = {head.lane: head for head in scanned}
            seen.share.took(time.monotonic() - began)
        with self._lock:
            return list(heads.values())

    def had_none(self, within: Ranges, lane: Lane) -> None:
        """A claim from this lane got nothing: it is asked again when it is seen."""
        seen = self._of(within)
        with self._lock:
            if seen.heads is not None:
                seen.heads.pop(lane, None)

    def _of(self, within: Ranges) -> SeenLanes:
        """What was seen in these ranges. Those that were asked for least recently are
        forgotten first."""
        with self._lock:
            seen = self._seen.pop(within, None) or SeenLanes()
            while len(self._seen) >= MOST:
                del self._seen[next(iter(self._seen))]
            self._seen[within] = seen
            return seen
