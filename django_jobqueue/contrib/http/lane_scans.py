"""Scans of the lanes for remote workers, which keep no marks of their own."""

from __future__ import annotations

import time
from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.queue import lanes
from django_jobqueue.store.queue.lanes import Head, Range
from django_jobqueue.store.rows import Lane
from django_jobqueue.workers.claiming.time_share import (
    LONG_SCAN,
    LONG_SCAN_SHARE,
    TimeShare,
)

MOST: Final = 100  # whose lanes are remembered

Ranges = tuple[Range, ...]


class LaneScans:
    """What was seen last of the lanes in the same ranges, through this process.

    A scan takes its time for each lane, and others can make very many of them. Then
    claims go on with what was seen, until there is time for another one.
    """

    def __init__(self) -> None:
        self._seen: dict[Ranges, dict[Lane, Head]] = {}
        self._shares: dict[Ranges, TimeShare] = {}

    def heads(self, db: Database, within: Ranges) -> list[Head]:
        """The lanes with jobs in these ranges, and where they begin."""
        if len(self._shares) >= MOST and within not in self._shares:
            self._seen.clear()
            self._shares.clear()
        share = self._shares.setdefault(
            within, TimeShare(LONG_SCAN_SHARE, free=LONG_SCAN)
        )
        if within not in self._seen or share.may_begin():
            began = time.monotonic()
            heads = lanes.scan(db, [], within)
            self._seen[within] = {head.lane: head for head in heads}
            share.took(time.monotonic() - began)
        return list(self._seen[within].values())

    def had_none(self, within: Ranges, lane: Lane) -> None:
        """A claim from this lane got nothing: it is asked again when it is seen."""
        self._seen.get(within, {}).pop(lane, None)
