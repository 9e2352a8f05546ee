"""What a host needs whatever its handlers do, besides leases."""

from __future__ import annotations

from collections.abc import Callable

from django_jobqueue.host.maintenance.deadlines import Prospects
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.notification_room import NotificationRoom
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.processes.loop import LoopGroup
from django_jobqueue.processes.worker_config import Plan
from django_jobqueue.store.connection import OwnConnection


class Chores(LoopGroup):
    """Rescue, expiry, pruning, room for notifications: one thread, one connection."""

    def __init__(
        self,
        plan: Plan,
        *,
        pooled: bool,
        alone: Callable[[float], None],
        buried: Callable[[int], None] = lambda number: None,
    ) -> None:
        connection = OwnConnection("keeper", pooled=pooled)
        prospects = Prospects(connection, plan)
        self.rescuer = Rescuer(connection, prospects, alone=alone, buried=buried)
        loops = [
            self.rescuer,
            Expirer(connection, prospects),
            Pruner(connection),
            NotificationRoom(connection),
        ]
        super().__init__("keeper", loops)
