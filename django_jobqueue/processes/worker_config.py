"""The configuration of a worker process."""

from __future__ import annotations

import math
from typing import NamedTuple
from uuid import UUID

from django_jobqueue.domain.registry import Declaration


class WorkerConfig(NamedTuple):
    """The configuration of a worker process."""

    queues: tuple[str, ...] | None = None  # None is every queue
    threads: int = 4
    async_slots: int = 100
    drain: bool = False  # end when nothing can be run now
    drain_all: bool = False  # end when nothing is left that could run ever
    drain_timeout: float = math.inf  # seconds that this may take
    quarantined: bool = False  # run only jobs that must run alone, one at a time
    listen: bool = True  # LISTEN works
    standby: str = ""  # work only as the one host of this name that is active
    standby_token: UUID | None = None  # of its lease
    embedded: bool = False  # the workers are threads of another program
    host_id: UUID | None = None  # of the host's row
    host_identity: str = ""  # of its process
    supervisor: str = ""  # the name of the host in its row
    name: str = ""  # of the worker; empty is host:pid

    def serves(self, queue: str) -> bool:
        """True if jobs of this queue are claimed."""
        return self.queues is None or queue in self.queues

    def has_slots_for(self, declaration: Declaration) -> bool:
        """True if there are slots for these handlers, sync or async."""
        return bool(self.async_slots if declaration.is_async else self.threads)

    def for_quarantined(self) -> WorkerConfig:
        """The same for a worker that runs quarantined jobs."""
        slots = min(1, self.threads), min(1, self.async_slots)
        return self._replace(
            quarantined=True, drain=True, threads=slots[0], async_slots=slots[1]
        )
