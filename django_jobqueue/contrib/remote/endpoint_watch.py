"""Declares endpoints, and looks after handed-over jobs: ends those whose endpoints do
not call back, and tells endpoints what is cancelled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final

from django_jobqueue.conf import conf
from django_jobqueue.contrib.remote import delivery, endpoint_rows, remote_workers
from django_jobqueue.contrib.remote.held_attempts import LATE, HeldAttempts, in_own
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import NotDelivered, RemoteExtraMissing
from django_jobqueue.host.maintenance.declarer import Step
from django_jobqueue.processes.loop import Loop
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.queue.finish import Holder
from django_jobqueue.store.queue.hand_over import declare_endpoints

logger = logging.getLogger("django_jobqueue.remote")

CHECK_EVERY: Final = 5.0  # seconds
CANCELS_AT_ONCE: Final = 10  # of a round


def thread(
    db: Database, connect: Callable[[str], OwnConnection], host: object
) -> EndpointWatch | None:
    """A watch, where some endpoint has jobs or may get some."""
    return EndpointWatch(connect("endpoints")) if endpoint_rows.has_any(db) else None


def declared(db: Database) -> Sequence[Step]:
    """The endpoints in the settings."""
    return [("endpoints", list(conf.endpoints), partial(declare_endpoints, db))]


class EndpointWatch(Loop):
    """Every host has one: whoever comes first ends a job, and tells its endpoint."""

    name = "endpoints"

    def __init__(self, connection: OwnConnection) -> None:
        super().__init__()
        self._connection = connection

    def tick(self) -> float:
        """One round."""
        began = time.monotonic()
        is_full = self.end_late_jobs() == endpoint_rows.BATCH
        self.send_cancels()
        return 0.0 if is_full else max(0.0, began + CHECK_EVERY - time.monotonic())

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def end_late_jobs(self) -> int:
        """End a batch of jobs that are past their timeouts; return how many there
        were."""
        endpoint_rows.see(self._connection)
        late = endpoint_rows.late(self._connection, LATE)
        by_worker = attrgetter("worker", "endpoint")
        for (worker, name), jobs in groupby(sorted(late, key=by_worker), by_worker):
            ids = [job.id for job in jobs]
            held = remote_workers.held(self._connection, worker, ids)
            attempts = HeldAttempts(
                in_own(self._connection), Holder(worker, name, ""), "endpoint"
            )
            attempts.end_late(held)
        return len(late)

    def send_cancels(self) -> None:
        """Tell endpoints about jobs that are to be cancelled."""
        for cancel in endpoint_rows.take_untold_cancels(
            self._connection, CANCELS_AT_ONCE
        ):
            endpoint_rows.see(self._connection)  # each may take until its timeout
            declaration = registry.get(cancel.job_type)
            if declaration is None or not declaration.endpoint:
                logger.warning(
                    "%s is not notified that job %s is cancelled: this release has "
                    "no remote_job(%r, endpoint=…)",
                    cancel.endpoint,
                    cancel.id,
                    cancel.job_type,
                )
                continue
            try:
                status = delivery.send_cancel(declaration, cancel)
            except (NotDelivered, RemoteExtraMissing) as error:
                logger.warning(
                    "%s could not be notified that job %s is cancelled: %s",
                    cancel.endpoint,
                    cancel.id,
                    error,
                )
            else:
                logger.info(
                    "%s was notified that job %s is cancelled, and answered %d",
                    cancel.endpoint,
                    cancel.id,
                    status,
                )
