"""``runworkers --drain-all``: work until nothing is left, retries and later jobs
included."""

from __future__ import annotations

import logging
import math
import time

from django_jobqueue.conf import conf
from django_jobqueue.domain.log_events import Event
from django_jobqueue.host.control import HostControl
from django_jobqueue.processes.worker_config import WorkerConfig

logger = logging.getLogger("django_jobqueue.supervisor")


class DrainAll:
    """Stops a host as a signal does, when maintenance finds no job, or when the time
    for it is over."""

    def __init__(self, config: WorkerConfig, control: HostControl) -> None:
        self.timed_out = False
        self._is_on = config.drain_all
        self._control = control
        self._timeout = config.drain_timeout
        self._ends_at = time.monotonic() + self._timeout

    @property
    def seconds_left(self) -> float:
        """Seconds until the time is over; without end if none was set."""
        return max(0.0, self._ends_at - time.monotonic()) if self._is_on else math.inf

    def proceed(self) -> None:
        """Stop the host if it is time."""
        if not self._is_on or self._control.stopping:
            return
        if self._control.process_table.nothing_remains:
            self._stop(logging.INFO, "Nothing is left to run: stopping")
        elif not self.seconds_left:
            self.timed_out = True
            self._stop(
                logging.WARNING,
                f"Jobs are left after --drain-timeout {self._timeout:g} s: stopping",
            )

    def _stop(self, level: int, message: str) -> None:
        extra = {"event": Event.HOST_STOPPING, "signal": ""}
        logger.log(level, message, extra=extra)
        self._control.stop_within(conf.grace)
