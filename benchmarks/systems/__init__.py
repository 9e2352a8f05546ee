"""The systems that run beside one another."""

from __future__ import annotations

from typing import Final

from benchmarks.systems import (
    celery,
    chancy,
    django_jobqueue,
    django_ox,
    django_tasks_db,
    dramatiq,
    graphile_worker,
    pg_boss,
    pgqueuer,
    procrastinate,
)
from benchmarks.systems.base import System

OURS: Final = django_jobqueue.SYSTEM
PGQUEUER: Final = pgqueuer.SYSTEM
CHANCY: Final = chancy.SYSTEM
PROCRASTINATE: Final = procrastinate.SYSTEM
DJANGO_TASKS_DB: Final = django_tasks_db.SYSTEM
DJANGO_TASKS_DB_OFTEN: Final = django_tasks_db.OFTEN_SYSTEM
DJANGO_OX: Final = django_ox.SYSTEM
GRAPHILE_WORKER: Final = graphile_worker.SYSTEM
GRAPHILE_WORKER_ONE_BY_ONE: Final = graphile_worker.ONE_BY_ONE
PG_BOSS: Final = pg_boss.SYSTEM
CELERY: Final = celery.SYSTEM
DRAMATIQ: Final = dramatiq.SYSTEM

ON_POSTGRES: Final[tuple[System, ...]] = (
    OURS,
    PGQUEUER,
    CHANCY,
    PROCRASTINATE,
    DJANGO_TASKS_DB,
    DJANGO_OX,
    GRAPHILE_WORKER,
    PG_BOSS,
)
ALL: Final[tuple[System, ...]] = (*ON_POSTGRES, CELERY, DRAMATIQ)
