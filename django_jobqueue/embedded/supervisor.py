"""The workers of this process, and what keeps them: all that ``runworkers`` has
processes for."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from dataclasses import replace
from typing import Final

from django_jobqueue.embedded.embedded_maintenance import EmbeddedMaintenance
from django_jobqueue.embedded.lifecycle import WorkerLifecycle
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution import connection_reset
from django_jobqueue.host.maintenance.quarantine import Quarantine
from django_jobqueue.host.restarts import Restarts
from django_jobqueue.processes import identity
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig

BEAT: Final = 0.25  # seconds between looks
HASTE: Final = 0.01  # the same while somebody waits for an end
ENTRIES: Final = 8  # for the worker, those that it replaced, and one for jobs alone
ALONE_AFTER: Final = 3.0  # seconds that a job that must run alone is left to others

_numbers = itertools.count(1)


class EmbeddedSupervisor(Loop):
    """Has one worker run in this process, and another one after it when it was
    restarted or has lost its lease."""

    name = "embedded worker"
    longest_after_error = 1.0  # somebody may wait for it to stop

    def __init__(self, config: WorkerConfig, *, grace: float) -> None:
        super().__init__()
        self.process_table = ProcessTable(ENTRIES)
        self.lives: list[WorkerLifecycle] = []  # changed by its own thread alone
        self._config = config
        self._grace = grace
        self._maintenance = EmbeddedMaintenance(self.process_table, config)
        self._restarts = Restarts()
        self._fill_at = 0.0
        self._is_closing = False
        self._told: deque[float | None] = deque()  # graces, as others said them
        self._quarantine = Quarantine()
        self._has_made_room = False  # for a job that must run alone

    @property
    def lifecycle(self) -> WorkerLifecycle | None:
        """The worker that claims; None while there is none."""
        ordinary = (
            lifecycle for lifecycle in self.lives if not lifecycle.config.quarantined
        )
        return next(
            (lifecycle for lifecycle in ordinary if not lifecycle.is_leaving), None
        )

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended, so that nothing of it is left."""
        return self._thread is not None and not self._thread.is_alive()

    def join(self, timeout: float) -> bool:
        """Wait until it has ended; False if it has not after so many seconds."""
        assert self._thread is not None
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def leave(self, grace: float | None) -> None:
        """End: after the grace in any case; of several graces the one that is over
        first holds."""
        self._told.append(grace)
        self.wake()

    def tick(self) -> float:
        """Look after everybody."""
        self._listen()
        if not self._is_closing and time.monotonic() >= self._fill_at:
            self._fill()
        for lifecycle in self.lives:
            lifecycle.look()
        if any(lifecycle.is_last for lifecycle in self.lives):
            self._end(None)
        self._maintenance.hear([lifecycle.worker.calls for lifecycle in self.lives])
        self._clear()
        if self._is_closing and not self.lives:
            self.stop(0)
        ending = any(
            lifecycle.is_leaving or lifecycle.config.drain for lifecycle in self.lives
        )
        return HASTE if ending else BEAT

    def close(self) -> None:
        """All have ended."""
        self._maintenance.stop()

    def _listen(self) -> None:
        """Do what others told it."""
        while self._told:
            self._end(self._told.popleft())

    def _end(self, grace: float | None) -> None:
        self._is_closing = True
        for lifecycle in self.lives:
            lifecycle.leave(grace)

    def _fill(self) -> None:
        """Have a worker here, and now and then one for a job that runs alone."""
        try:
            if not self._maintenance.has_started:
                self._maintenance.start()
                connection_reset.keep_connections()
            lifecycle = self.lifecycle
            if lifecycle is None:
                self._spawn(replace(self._config, listen=self.process_table.can_listen))
            else:
                self._make_room(lifecycle)
        except StoreUnavailable as error:
            self._fill_at = time.monotonic() + error.retry_in

    def _make_room(self, lifecycle: WorkerLifecycle) -> None:
        """Let a job that must run alone do so: with no other job in this process. It
        was there when a worker died, and is left to others first, who have a process
        for it."""
        if any(other.config.quarantined for other in self.lives):
            return
        if self._wants_quarantine():
            self._has_made_room = True
            lifecycle.close_doors()
            if lifecycle.is_empty:
                self._spawn(replace(self._config.for_quarantined(), listen=False))
        elif self._has_made_room:
            self._has_made_room = False
            if not lifecycle.is_paused:
                lifecycle.open_doors()

    def _wants_quarantine(self) -> bool:
        """Whether a job that must run alone has been left to others for long enough."""
        now, since = time.monotonic(), self._maintenance.alone_since
        if not since or now - since < ALONE_AFTER:
            return False
        return self._quarantine.wants_worker(self.process_table.quarantine_seen_at, now)

    def _spawn(self, config: WorkerConfig) -> None:
        """Start a worker. Raises StoreUnavailable."""
        entry = self.process_table.free()
        if entry is None:  # many are still leaving
            return
        name = f"{identity.name_of(os.getpid())}/embedded-{next(_numbers)}"
        lifecycle = WorkerLifecycle(
            replace(config, name=name), self.process_table, entry, grace=self._grace
        )
        lifecycle.begin()
        self.lives.append(lifecycle)
        now = time.monotonic()
        if lifecycle.has_failed:
            self._restarts.died(lived=0.0, now=now)
        else:
            self._restarts.reset()
        self._fill_at = self._restarts.next_at

    def _clear(self) -> None:
        """Bury those who are done."""
        for lifecycle in [lifecycle for lifecycle in self.lives if lifecycle.is_done]:
            has_claimed = lifecycle.has_claimed
            self._maintenance.bury(lifecycle.end())
            self.lives.remove(lifecycle)
            if lifecycle.config.quarantined:
                self._quarantine.ended(time.monotonic(), has_claimed=has_claimed)
