"""Keeps a host from working in the copy of a database."""

from __future__ import annotations

import logging
import time
from typing import Final

from django_jobqueue.domain.log_events import Event
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import OwnConnection

logger = logging.getLogger("django_jobqueue.maintenance")

CHECK_EVERY: Final = 5.0  # seconds
LOG_EVERY: Final = 60.0  # seconds
WAY_OUT: Final = (
    "Nothing runs here: no job, no schedule, no rescue, no pruning. If this is the "
    "database to work on from now on, run: manage.py jobqueue wake"
)


class SleepCheck:
    """Asks before the host does anything, until it may work, and not again when what
    follows is tried again."""

    def __init__(self, process_table: ProcessTable) -> None:
        self._process_table = process_table
        # In a successor of a maintenance process that died, the host works already.
        self._may_work = process_table.maintenance_is_ready
        self._log_at = 0.0  # time.monotonic()

    def check(self, connection: OwnConnection) -> None:
        """Raises StoreUnavailable where hosts are to do nothing."""
        if self._may_work:
            return
        sleep = database_identity.check_in(connection)
        self._process_table.is_asleep = sleep is not None
        if sleep is None:
            self._may_work = True
            return
        if time.monotonic() >= self._log_at:
            self._log_at = time.monotonic() + LOG_EVERY
            extra = {"event": Event.HOST_ASLEEP}
            logger.error("%s %s", sleep.value, WAY_OUT, extra=extra)
        raise StoreUnavailable(sleep.value, retry_in=CHECK_EVERY, is_outage=False)
