"""Says when full scans of the queue are slow, and what may make them so."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from typing import Final

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.reading import old_transactions
from django_jobqueue.store.reading.old_transactions import OldTransaction

logger = logging.getLogger("django_jobqueue.worker")

SLOW: Final = 0.25  # seconds that a full scan takes; then the log says so
WARN_EVERY: Final = 600.0  # seconds


class SlowScans:
    """It says what it sees, and leaves it to people which of that is the cause: a
    transaction that has been open for long keeps dead rows from being cleaned away, and
    on a busy machine everything takes longer."""

    def __init__(self, connection: OwnConnection) -> None:
        self._connection = connection
        self._warned_at = -math.inf

    def took(self, seconds: float, *, pause: float) -> None:
        """One took so long, which is slow; the next one comes after this pause."""
        now = time.monotonic()
        if now <= self._warned_at + WARN_EVERY:
            return
        self._warned_at = now
        oldest = None
        with contextlib.suppress(StoreUnavailable, psycopg.Error):
            oldest = old_transactions.oldest(self._connection)
        logger.warning(
            "Full scan of the queue took %.2g s; next in %.0f s. %s. The load of this "
            "machine is %.1f on %d CPUs",
            seconds,
            pause,
            _described(oldest),
            os.getloadavg()[0],
            os.cpu_count() or 1,
        )


def _described(oldest: OldTransaction | None) -> str:
    if oldest is None:
        return "No other transaction is open in this database, as far as can be seen"
    who = oldest.name if oldest.pid is None else f"{oldest.pid} {oldest.name}".strip()
    return (
        f"The oldest open transaction of this database began {oldest.age:.1f} s ago "
        f"({who}, {oldest.state})"
    )
