"""Looks around: which lanes have jobs now, and when there will be some."""

from __future__ import annotations

import logging
import math
import time
from typing import Final

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.lanes import Lanes

logger = logging.getLogger(__name__)

EVERY: Final = 1.0  # seconds, while busy
SHARE: Final = 0.05  # of the time, for sweeps
SAVED: Final = 0.1  # seconds; of that share no more is kept for later
SLOW: Final = 0.25  # seconds
WARN_EVERY: Final = 600.0  # seconds


class FullScans:
    """Gives sweeps a small share of the time, however long each takes.

    A job may turn up behind a mark: it was given back, or its transaction was open for
    long. A sweep looks at the lanes from their left ends, finds it, and walks over all
    dead entries: there may be a million while somebody's transaction stays open.
    """

    def __init__(self) -> None:
        self.wanted = True  # there may be jobs behind a mark
        self._left = SAVED  # seconds
        self._at = time.monotonic()
        self._warned_at = -math.inf

    def may_begin(self) -> bool:
        """Whether there is time left for one."""
        now = time.monotonic()
        self._left = min(SAVED, self._left + (now - self._at) * SHARE)
        self._at = now
        return self._left > 0

    def took(self, seconds: float) -> None:
        """One was made, and took so long."""
        self._left -= seconds
        if seconds > SLOW and self._at > self._warned_at + WARN_EVERY:
            self._warned_at = self._at
            logger.warning(
                "A look at the whole queue took %.2g s, so there is one in %.0f s. "
                "Probably a transaction has been open for long, and keeps dead rows "
                "from being cleaned away: find it by xact_start and backend_xmin in "
                "pg_stat_activity, and end it",
                seconds,
                seconds / SHARE,
            )


class LaneScanner:
    """Looks at the lanes, and knows when to look again."""

    def __init__(self, connection: OwnConnection, known: Lanes) -> None:
        self.next_at = 0.0  # time.monotonic(), while busy
        self._connection = connection
        self._known = known
        self._full_scans = FullScans()
        self._due_in = math.inf  # seconds until the first future job is due

    def ask_behind(self) -> None:
        """There may be jobs where a claim has passed already."""
        self._full_scans.wanted = True

    @property
    def is_due(self) -> bool:
        """Whether to look also while jobs are found without."""
        if time.monotonic() >= self.next_at:
            return True
        return self._full_scans.wanted and self._full_scans.may_begin()

    @property
    def longest_rest(self) -> float:
        """Seconds until there is a reason to look, also when nothing is heard."""
        return min(EVERY if self._full_scans.wanted else math.inf, self._due_in)

    def probe(self) -> None:
        """Learn which of the known lanes have a job to run now. Raises
        StoreUnavailable."""
        known = self._known.marks(full_scan=False)
        self._known.looked(lanes.probe(self._connection, known))

    def look(self) -> list[Lane]:
        """The lanes that have a job to run now. Raises StoreUnavailable."""
        heads = (
            self._full_scan()
            if self._full_scans.may_begin()
            else self._read(full_scan=False)
        )
        self._known.looked(heads)
        self.next_at = time.monotonic() + EVERY
        later = (head.due_in for head in heads if head.due_in and not head.is_due)
        self._due_in = max(0.001, min(later, default=math.inf))
        return [head.lane for head in heads if head.is_due]

    def _full_scan(self) -> list[lanes.Head]:
        """Look from the left ends. One that fails has taken its time as well, and is
        still wanted: one that the server cut off after 15 s must not follow another."""
        began = time.monotonic()
        self._full_scans.wanted = False  # first: it may be asked for meanwhile
        try:
            return self._read(full_scan=True)
        except BaseException:
            self._full_scans.wanted = True
            raise
        finally:
            self._full_scans.took(time.monotonic() - began)

    def _read(self, *, full_scan: bool) -> list[lanes.Head]:
        return lanes.look(self._connection, self._known.marks(full_scan=full_scan))
