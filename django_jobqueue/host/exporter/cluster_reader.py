"""Reads the metrics of the cluster for the exporter, on a connection that it keeps only
while somebody asks."""

from __future__ import annotations

import threading
import time
from typing import Final

from django_jobqueue.metrics import cluster_figures
from django_jobqueue.metrics.metric import Sample
from django_jobqueue.store.connection import OwnConnection

UNUSED: Final = 5.0  # seconds after which the connection is closed
LONGEST_WAIT: Final = 4.0  # seconds, for those who asked before


class ClusterReader:
    """One reading at a time."""

    def __init__(self) -> None:
        self._connection = OwnConnection("metrics", pooled=True)
        self._reading = threading.Lock()
        self._used_at = 0.0  # time.monotonic()
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """True if there is a connection to close."""
        return self._is_open

    def read(self) -> list[Sample] | None:
        """The samples; None if those who asked before take too long."""
        if not self._reading.acquire(timeout=LONGEST_WAIT):
            return None
        try:
            self._is_open = True
            return cluster_figures.read(self._connection)
        finally:
            self._used_at = time.monotonic()
            self._reading.release()

    def close(self, unused: float = 0.0) -> None:
        """Close the connection if nobody used it for so many seconds."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            if self._is_open and time.monotonic() >= self._used_at + unused:
                self._connection.close()
                self._is_open = False
        finally:
            self._reading.release()
