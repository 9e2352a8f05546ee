"""What a host needs whatever its handlers do, besides leases."""

from __future__ import annotations

from collections.abc import Callable

from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.notification_room import NotificationRoom
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.processes.loop import LoopGroup
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection


class MaintenanceLoops(LoopGroup):
    """Rescue, expiry, pruning, room for notifications: one thread, one connection."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        pooled: bool,
        quarantined: Callable[[float], None],
        buried: Callable[[int], None] = lambda number: None,
    ) -> None:
        connection = OwnConnection("maintenance", pooled=pooled)
        deadlines = DeadlineWatch(connection, config)
        self.rescuer = Rescuer(
            connection, deadlines, quarantined=quarantined, buried=buried
        )
        loops = [
            self.rescuer,
            Expirer(connection, deadlines),
            Pruner(connection),
            NotificationRoom(connection),
        ]
        super().__init__("maintenance", loops)
