"""The systems that run beside one another."""

from __future__ import annotations

from typing import Final

from benchmarks.systems import (
    django_jobqueue,
    django_tasks_db,
    pgqueuer,
    procrastinate,
)
from benchmarks.systems.base import System

OURS: Final = django_jobqueue.SYSTEM
PGQUEUER: Final = pgqueuer.SYSTEM
PROCRASTINATE: Final = procrastinate.SYSTEM
DJANGO_TASKS_DB: Final = django_tasks_db.SYSTEM
DJANGO_TASKS_DB_OFTEN: Final = django_tasks_db.OFTEN_SYSTEM

ALL: Final[tuple[System, ...]] = (OURS, PGQUEUER, PROCRASTINATE, DJANGO_TASKS_DB)
