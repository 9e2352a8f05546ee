"""Maintenance of a host, whatever its handlers do: renews leases, rescues, expires,
fires schedules and prunes. It runs in the maintenance process, or in two threads beside
an application."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import Final

from django_jobqueue import rooms
from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.host.maintenance.clock_repair import ClockRepair
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.declarer import Declarer
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.host_listener import HostListener
from django_jobqueue.host.maintenance.host_row import HostRow
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.host.maintenance.rescuer import Rescuer, death_of
from django_jobqueue.host.maintenance.sleep_check import SleepCheck
from django_jobqueue.processes import identity
from django_jobqueue.processes.listener import can_listen
from django_jobqueue.processes.loop import Loop
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.shutdown import RECOVERY_ENDS
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import notify, worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.remaining import any_remaining

logger = logging.getLogger("django_jobqueue.maintenance")


class HostMaintenance:
    """Its threads: the renewer, all other loops, and those of features.

    Call ``get_ready()`` until it succeeds, then ``start()``, and ``stop()`` last."""

    def __init__(self, process_table: ProcessTable, config: WorkerConfig) -> None:
        self.process_table = process_table
        self.config = config
        self.has_started = False
        self._host_row = HostRow(process_table, config)
        self._sleep_check = SleepCheck(process_table)
        self._listener: HostListener | None = None
        self._predecessors: list[ProcessDeath] = []
        self._of_rooms: list[Loop] = []
        self._declarer = Declarer()
        # The same in each try, because they count the failures: each wait is longer
        # than the last, and the log has one line a minute.
        self._first = OwnConnection("maintenance", pooled=True)
        self._second = OwnConnection("maintenance", pooled=True)

    def get_ready(self) -> None:
        """Do once what must come before the first claim. Raises StoreUnavailable."""
        first, second = self._first, self._second
        try:
            self._sleep_check.check(first)
            self._declarer.declare(first)
            self._predecessors = find_dead(first)
            self.process_table.can_listen = listen_works(first, second)
            pooled = not self.process_table.can_listen
            connect = partial(self._connection, pooled=pooled)
            threads = rooms.offered("maintenance_threads")
            made = [thread(first, connect, self) for thread in threads]
            self._of_rooms = [loop for loop in made if loop is not None]
            self._host_row.record_lost(first)
            self._host_row.keep(first, conf.lease)  # a drained host claims nothing
        finally:
            first.close()
            second.close()

    def start(
        self, *, ours: Set[int] = frozenset(), deaths: Iterable[ProcessDeath] = ()
    ) -> None:
        """Start the loops, and let workers start. The supervisor reports the deaths of
        ``ours`` itself, since it knows their causes; ``deaths`` are the first ones.

        Raises RuntimeError if there is no room for a thread.
        """
        pooled = not self.process_table.can_listen
        self._loops = MaintenanceThread(
            self.config,
            connection=self._connection("maintenance", pooled),
            declarer=self._declarer,
            on_quarantined=self._report_quarantine,
            on_recovered=self._report_recovered,
            on_drained=self._report_drained,
        )
        self._renewer = Renewer(
            self.process_table,
            self._connection("renewer", pooled),
            self._host_row,
        )
        self._threads: list[Loop] = [self._renewer, self._loops]
        relay = None if pooled else self.process_table.relay()
        if relay is not None:
            connection = self._connection("listener")
            self._listener = HostListener(
                self.process_table,
                relay,
                connection,
                self.config,
                on_request=self._hear_request,
            )
            self._threads.append(self._listener)
        self._threads += self._of_rooms
        predecessors = [one for one in self._predecessors if one.worker not in ours]
        for death in (*predecessors, *deaths):  # first those without a number
            self.rescuer.report(death)
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError:
            for thread in self._threads:
                thread.stop(0)
            raise
        self.has_started = True
        self.process_table.maintenance_is_ready = True
        self.process_table.call_supervisor()

    def _connection(self, purpose: str, pooled: bool = False) -> OwnConnection:
        """One that is refused where hosts are to do nothing."""
        on_connect = self._sleep_check.check_again
        return OwnConnection(purpose, pooled=pooled, on_connect=on_connect)

    def change_config(self, config: WorkerConfig) -> None:
        """Workers have other slots or queues from now on."""
        self.config = config
        if self.has_started:
            self._loops.change_config(config)
        if self._listener is not None:
            self._listener.config = config

    @property
    def rescuer(self) -> Rescuer:
        """The loop that looks after the jobs of dead workers."""
        return self._loops.rescuer

    def recover(self, death: ProcessDeath) -> None:
        """Look after the jobs of a worker that ended."""
        self.rescuer.report(death)
        self._loops.hurry(self.rescuer)
        self._wake_rooms()

    def check_workers(self) -> None:
        """Look at the workers now: one of them has something to do, or was asked for
        something."""
        self._renewer.wake()
        self._wake_rooms()

    def _wake_rooms(self) -> None:
        """Let another host be active as soon as operators want no worker here."""
        if self.process_table.wants_no_worker:
            for loop in self._of_rooms:
                loop.wake()

    def settle(self) -> None:
        """Deal with the last deaths, as far as there is time."""
        self.rescuer.settle(RECOVERY_ENDS)

    def stop(self, timeout: float) -> None:
        """End the loops and close their connections; wait for each so many seconds."""
        for thread in self._threads:
            thread.stop(0)
        for thread in self._threads:
            thread.stop(timeout)

    def _hear_request(self, host: str) -> None:
        if host == self.config.supervisor:
            self._renewer.request_arrived()

    def _report_quarantine(self, seen_at: float) -> None:
        if seen_at != self.process_table.quarantine_seen_at:
            self.process_table.quarantine_seen_at = seen_at
            self.process_table.call_supervisor()

    def _report_drained(self) -> None:
        self.process_table.nothing_remains = True
        self.process_table.call_supervisor()

    def _report_recovered(self, number: int) -> None:
        self.process_table.recovered = number
        self.process_table.call_supervisor()


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


MUCH: Final = 0.5  # of the room; PostgreSQL itself warns from here on, in its own log
ASK_EVERY: Final = 60.0  # seconds
AGAIN_AFTER: Final = 600.0  # seconds between two warnings


class NotificationQueueWatch(Loop):
    """Asks how full the queue is.

    The question itself helps: without it, a queue that was full once stays full for
    every commit that notifies, even after all have read its content (seen on 18).
    """

    name = "notification queue"

    def __init__(self, connection: OwnConnection) -> None:
        super().__init__()
        self._connection = connection
        self._warned_at = -AGAIN_AFTER  # time.monotonic()

    def tick(self) -> float:
        """Ask, and warn in time. The queue holds 8 GB, so it takes long to fill."""
        used = notify.usage(self._connection)
        now = time.monotonic()
        if used >= MUCH and now - self._warned_at >= AGAIN_AFTER:
            self._warned_at = now
            logger.warning(
                "The server's queue of notifications is %.0f %% full, and when it is "
                "full, commits that notify fail. A session that listens has a "
                "transaction open; look for the oldest one in pg_stat_activity.",
                100 * used,
            )
        return ASK_EVERY


class LoopGroup(Loop):
    """Loops that share one thread, and so may share one connection."""

    def __init__(self, name: str, loops: Sequence[Loop]) -> None:
        self.name = name
        super().__init__()
        self._due = dict.fromkeys(loops, 0.0)  # time.monotonic()
        self._lock = threading.Lock()

    def tick(self) -> float:
        """Do the rounds that are due."""
        for loop, due in self._due.items():
            if due <= time.monotonic():
                self._due[loop] = math.inf  # unless it is hurried meanwhile
                wait = loop.round()
                self._set_due(loop, time.monotonic() + wait)
        return max(0.0, min(self._due.values()) - time.monotonic())

    def hurry(self, loop: Loop) -> None:
        """Let this one's next round be now, or after its rest if it has failed."""
        with self._lock:
            if not loop.is_failing:
                self._due[loop] = 0.0
        self.wake()

    def close(self) -> None:
        """Close each."""
        for loop in self._due:
            loop.close()

    def _set_due(self, loop: Loop, moment: float) -> None:
        with self._lock:
            hurried = self._due[loop] <= moment and not loop.is_failing
            self._due[loop] = 0.0 if hurried else moment


class MaintenanceThread(LoopGroup):
    """Rescue, expiry, pruning, room for notifications, and what rooms add: one thread,
    one connection."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        connection: OwnConnection,
        declarer: Declarer,
        on_quarantined: Callable[[float], None],
        on_recovered: Callable[[int], None],
        on_drained: Callable[[], None],
    ) -> None:
        deadlines = DeadlineWatch(connection, config)
        self._configured: list[DeadlineWatch | DrainWatch] = [deadlines]
        self.rescuer = Rescuer(
            connection,
            deadlines,
            on_quarantined=on_quarantined,
            on_recovered=on_recovered,
        )
        loops = [
            self.rescuer,
            Expirer(connection, deadlines),
            ClockRepair(connection, deadlines),
            Pruner(connection, deadlines),
            NotificationQueueWatch(connection),
            declarer,
        ]
        declarer.connection = connection
        if config.drain_all:
            watch = DrainWatch(connection, config, on_drained)
            self._configured.append(watch)
            loops.append(watch)
        of_rooms = [
            make(connection, deadlines) for make in rooms.offered("maintenance_loops")
        ]
        super().__init__("maintenance", [*loops, *filter(None, of_rooms)])

    def change_config(self, config: WorkerConfig) -> None:
        """Look for the jobs that workers with other slots or queues can run."""
        for each in self._configured:
            each.config = config


def find_dead(connection: OwnConnection) -> list[ProcessDeath]:
    """Workers of this host whose process is surely gone: their supervisor was killed,
    and nobody needs to wait for their leases. Raises StoreUnavailable."""
    predecessors = worker_rows.predecessors(connection, identity.host())
    return [
        death_of(worker, "its supervisor died")
        for worker, other in predecessors
        if identity.is_dead(other)
    ]


def listen_works(first: OwnConnection, second: OwnConnection) -> bool:
    """True if LISTEN works, tried on two connections that are ``pooled``, unless a
    setting says. Raises StoreUnavailable."""
    if conf.listen is not None:
        return conf.listen
    works = can_listen(first, second)
    if not works:
        logger.warning(
            "LISTEN receives nothing: this looks like a transaction pooler. Polling "
            "instead. For pickup within milliseconds give the settings of this host a "
            "direct connection."
        )
    return works
