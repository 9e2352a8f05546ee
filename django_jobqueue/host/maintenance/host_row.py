"""Keeps the row of this host: writes how it is, and reads what operators ask of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.states import HostState
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes import identity
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import host_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.host_rows import HostReport
from django_jobqueue.store.partial_batches import BRIEF

logger = logging.getLogger("django_jobqueue.maintenance")

POLL_EVERY: Final = 1.0  # seconds, while no worker would hear of a request


class HostRow:
    """Copies the supervisor's reports to the row, and the requests in the row to the
    supervisor, through the process table.

    While somebody has locked the row, it is left alone: no lease depends on it.
    """

    def __init__(self, process_table: ProcessTable, config: WorkerConfig) -> None:
        self._process_table = process_table
        self._config = config
        self._written = 0  # the number of the report that the row has
        self._passed_on: dict[str, Any] | None = None

    @property
    def has_news(self) -> bool:
        """True if the supervisor has reported something since."""
        return self._written != self._process_table.report.number

    @property
    def pause(self) -> float:
        """Seconds until requests are to be read again, if nothing else happens."""
        table = self._process_table
        if self._config.host_id is None:
            return math.inf
        hears = table.listener_hears or (
            table.can_listen and any(entry.worker for entry in table)
        )
        return math.inf if hears else POLL_EVERY

    def keep(self, connection: OwnConnection, lease: float) -> None:
        """Write the row, and pass on what operators ask. Raises StoreUnavailable."""
        version, id = self._process_table.report.version(), self._config.host_id
        if version is None or id is None:
            return
        report = _row_of(self._config, version.value)
        with _unless_locked(connection):
            self._pass_on(host_rows.keep(connection, report, lease))
            self._written = version.number

    def record_lost(self, connection: OwnConnection) -> None:
        """Record the end of hosts of this machine whose process is surely gone: they
        were killed, and their rows would look alive until their leases lapse. Raises
        StoreUnavailable."""
        if self._config.host_id is None:
            return
        others = host_rows.predecessors(
            connection, identity.host(), self._config.host_id
        )
        dead = [id for id, other in others.items() if identity.is_dead(other)]
        if dead:
            host_rows.lost(connection, dead)

    def poll(self, connection: OwnConnection) -> None:
        """Pass on what operators ask. Raises StoreUnavailable."""
        if self._config.host_id is not None:
            desired = host_rows.desired(connection, self._config.host_id)
            if desired is not None:
                self._pass_on(desired)

    def close(self, connection: OwnConnection) -> None:
        """The host ends, or another program takes the place of this one. Raises
        StoreUnavailable."""
        version, id = self._process_table.report.version(), self._config.host_id
        if version is None or id is None:
            return
        report = version.value
        if report["state"] == HostState.RESTARTING:
            self.keep(connection, conf.lease)
        else:
            with _unless_locked(connection):
                host_rows.stopped(connection, id, report["applied"])

    def _pass_on(self, desired: dict[str, Any]) -> None:
        if desired == self._passed_on:
            return
        self._passed_on = desired
        if not self._process_table.orders.write(desired):
            logger.error("The request to this host is too long to be passed on")
        self._process_table.call_supervisor()


@contextmanager
def _unless_locked(connection: OwnConnection) -> Iterator[None]:
    """Give up what the block does if somebody holds a lock that it needs."""
    try:
        with connection.patience(BRIEF):
            yield
    except StoreUnavailable as error:
        if not is_contended(error):
            raise


def _row_of(config: WorkerConfig, report: dict[str, Any]) -> HostReport:
    assert config.host_id is not None
    return HostReport(
        id=config.host_id,
        name=config.supervisor,
        host=identity.host(),
        identity=config.host_identity,
        embedded=config.embedded,
        release=conf.release,
        processes=report["processes"],
        threads=report["threads"],
        async_slots=report["async_slots"],
        queues=report["queues"],
        state=report["state"],
        applied=report["applied"],
        error=report["error"],
    )
