"""A host that does nothing but fire schedules, by a clock that runs fast.

Called with the number of seconds of that clock in a second. The database's functions of
time are the fast ones.
"""

from __future__ import annotations

import sys
import time

import django

django.setup()

from django_jobqueue.domain.registry import autodiscover  # noqa: E402
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch  # noqa: E402
from django_jobqueue.host.maintenance.scheduler import Scheduler  # noqa: E402
from django_jobqueue.processes.worker_config import WorkerConfig  # noqa: E402
from django_jobqueue.store.connection import OwnConnection  # noqa: E402


def run(speed: float) -> None:
    """Fire until killed."""
    autodiscover()
    connection = OwnConnection("maintenance", pooled=False)
    scheduler = Scheduler(connection, DeadlineWatch(connection, WorkerConfig()))
    while True:
        wait = scheduler.tick()
        time.sleep(min(0.2, max(0.0, wait) / speed))


if __name__ == "__main__":
    run(float(sys.argv[1]))
