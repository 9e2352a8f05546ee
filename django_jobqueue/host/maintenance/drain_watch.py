"""Finds out when nothing is left to run, for ``runworkers --drain-all``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django_jobqueue.domain.registry import registry
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.remaining import any_remaining

CHECK_EVERY: Final = 1.0  # seconds


class DrainWatch(Loop):
    """Asks whether any job is left, until there is none."""

    name = "drain"

    def __init__(
        self,
        connection: OwnConnection,
        config: WorkerConfig,
        on_drained: Callable[[], None],
    ) -> None:
        super().__init__()
        self._connection = connection
        self.config = config  # of the workers of this host, now
        self._on_drained = on_drained

    def tick(self) -> float:
        """Ask. A follower is there in the transaction that ends its job, so there is
        no moment between the two."""
        names = [d.name for d in registry if self.config.has_slots_for(d)]
        if not any_remaining(self._connection, names, self.config.queues):
            self._on_drained()
        return CHECK_EVERY
