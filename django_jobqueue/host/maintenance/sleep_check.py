"""Keeps a host from working in the copy of a database."""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.database_identity import Sleep

logger = logging.getLogger("django_jobqueue.maintenance")

LOG_EVERY: Final = 60.0  # seconds
WAY_OUT: Final = (
    "Nothing runs here: no job, no schedule, no rescue, no pruning. If this is now "
    "the real database, run: manage.py jobqueue wake"
)


class SleepCheck:
    """Asks before the host does anything, until it may work; and again whenever a
    connection was made, since the database may have been restored after the last one
    was lost. Any thread may call it."""

    def __init__(self, process_table: ProcessTable) -> None:
        self._process_table = process_table
        self._may_work = False  # what follows the check is tried again without it
        self._log_at = 0.0  # time.monotonic()
        self._lock = threading.Lock()

    def check(self, connection: OwnConnection) -> None:
        """Raises StoreUnavailable where hosts are to do nothing."""
        if not self._may_work:
            self._report(database_identity.check_in(connection))
            self._may_work = True

    def check_again(self, connection: OwnConnection) -> None:
        """The same on a new connection of a host that works."""
        self._report(database_identity.check_again(connection))

    def _report(self, sleep: Sleep | None) -> None:
        self._process_table.is_asleep = sleep is not None
        if sleep is None:
            return
        with self._lock:
            is_due = time.monotonic() >= self._log_at
            if is_due:
                self._log_at = time.monotonic() + LOG_EVERY
        if is_due:
            extra = {"event": Event.HOST_ASLEEP}
            logger.error("%s %s", sleep.value, WAY_OUT, extra=extra)
        raise database_identity.unavailable(sleep)
