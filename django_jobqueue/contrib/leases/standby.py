"""Holds the lease that lets a ``runworkers --standby`` work, or waits for it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from django_jobqueue.conf import conf
from django_jobqueue.contrib.leases import lease_rows
from django_jobqueue.contrib.leases.lease_rows import Beat, Claimant
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.processes import identity
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import FENCE_AT, ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import Database, OwnConnection

if TYPE_CHECKING:
    from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance

logger = logging.getLogger("django_jobqueue.maintenance")

LONGEST_PAUSE: Final = 1.0  # seconds between two attempts to take the lease
SHORTEST_PAUSE: Final = 0.05
AFTER_LOSS: Final = 2 * LONGEST_PAUSE  # the others come first
AGAIN_AFTER: Final = 0.25  # seconds, while somebody has locked its row


def thread(
    db: Database, connect: Callable[[str], OwnConnection], host: HostMaintenance
) -> Standby | None:
    """The thread that holds the lease of a host that stands by."""
    if not host.config.standby:
        return None
    return Standby(host.process_table, connect("standby"), host.config)


class Standby(Loop):
    """Takes the lease, renews it, and releases it at the end. The process table says
    whether it is held: the supervisor starts and stops workers by that.

    The token is the supervisor's, so that the successor of a maintenance process that
    died goes on with its lease. A host that operators have parked or drained does not
    take it, and releases it when it has no worker left: others can do the work.
    """

    name = "standby"

    def __init__(
        self,
        process_table: ProcessTable,
        connection: OwnConnection,
        config: WorkerConfig,
    ) -> None:
        super().__init__()
        assert config.standby_token is not None
        self._process_table = process_table
        self._connection = connection
        self._claimant = Claimant(
            name=f"{STANDBY}{config.standby}",
            token=config.standby_token,
            ttl=conf.lease,
            holder=config.supervisor,
            host=identity.host(),
        )
        self._logged: str | None = None  # who was active when it was logged last
        self._lapses_at = -math.inf  # lease_time(); another host's, as seen last
        self._is_leaving = False  # no worker may run; the lease is about to be released

    def tick(self) -> float:
        """Renew the lease, or try to take it."""
        began = lease_time()
        try:
            table = self._process_table
            if table.wants_no_worker and (self._is_leaving or not any(table)):
                return self._leave()
            self._is_leaving = False
            if table.standby_is_held:
                return self._renew(began)
            return LONGEST_PAUSE if table.wants_no_worker else self._take(began)
        except StoreUnavailable as error:
            error.retry_in = min(error.retry_in, conf.lease / 10)
            raise

    def _take(self, began: float) -> float:
        # Unless it lapsed by our own clock, too, that of the database was set forward,
        # and whoever holds it goes on for a while.
        takes_over = began >= self._lapses_at
        claimant = self._claimant._replace(takes_over=takes_over)
        answer = lease_rows.take(self._connection, claimant)
        if not answer.fence:
            if answer.seconds_left > 0:
                self._lapses_at = began + answer.seconds_left
            if answer.is_unawaited:
                lease_rows.wait_for(self._connection, self._claimant.name)
            self._log_wait(answer.holder)
            return max(SHORTEST_PAUSE, min(LONGEST_PAUSE, answer.seconds_left))
        logger.info(
            "This host is active: it holds the lease %r (fence %d)",
            self._claimant.name,
            answer.fence,
        )
        self._logged = None
        return self._hold(began)

    def _renew(self, began: float) -> float:
        claimant = self._claimant
        beat = Beat(claimant.name, claimant.token, claimant.ttl)
        was_renewed = lease_rows.renew(self._connection, [beat]).get(claimant.token)
        if was_renewed is None:
            logger.error(
                "This host is no longer active: its lease %r was taken away, or "
                "taken over; its workers are stopped",
                claimant.name,
            )
            self._process_table.standby_is_held = False
            self._process_table.call_supervisor()
            return AFTER_LOSS
        return self._hold(began) if was_renewed else AGAIN_AFTER

    def _hold(self, began: float) -> float:
        """Workers may run for most of a lease from here on."""
        table, before = self._process_table, self._process_table.standby_until
        table.standby_until = began + conf.lease * FENCE_AT
        if not table.standby_is_held or before < lease_time():
            table.standby_is_held = True
            table.call_supervisor()
        return conf.lease / 3

    def _leave(self) -> float:
        """Release the lease if this host has it: first no worker may start, and then
        there must be none."""
        table = self._process_table
        if table.standby_is_held:
            self._is_leaving = True
            table.standby_is_held = False
            table.call_supervisor()
            return SHORTEST_PAUSE
        if self._is_leaving and any(table):
            return SHORTEST_PAUSE
        if self._is_leaving:
            self._release()
            logger.info(
                "This host is no longer active: operators parked or drained it; the "
                "lease %r is free",
                self._claimant.name,
            )
        return LONGEST_PAUSE

    def _release(self) -> None:
        lease_rows.release(self._connection, self._claimant.name, self._claimant.token)
        self._is_leaving = False

    def _log_wait(self, holder: str) -> None:
        if holder != self._logged:
            self._logged = holder
            logger.info(
                "Standing by for the lease %r: %s is active; no worker runs here",
                self._claimant.name,
                holder or "another host",
            )

    def close(self) -> None:
        """Let another host be active at once."""
        if self._process_table.standby_is_held or self._is_leaving:
            self._process_table.standby_is_held = False
            self._release()
        self._connection.close()
