"""Chancy: ``sync_push`` to enqueue, ``chancy worker start`` to work.

    python -m benchmarks.apps.chancy_app 300

writes the number of jobs that run at once into the database, where its queues have it,
and goes on as its worker.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
from chancy import Chancy, Job, Queue, job

from benchmarks import journal

CHUNK: Final = 1_000  # jobs of one INSERT
BARE: Final = """
INSERT INTO chancy_jobs (id, queue, func, kwargs, state, scheduled_at)
VALUES (%s, 'default', 'benchmarks.apps.chancy_app.work', %s, 'pending', now())
"""

log = logging.getLogger("chancy")
log.setLevel(logging.WARNING)
app = Chancy(
    "host={PGHOST} user={PGUSER} dbname={PGDATABASE}".format(**os.environ), log=log
)


@job(queue="default")
async def work(*, number: int, ms: int) -> None:
    """The handler."""
    await journal.awork(number, ms)


def install() -> None:
    """Migrate."""

    async def do() -> None:
        async with app:
            await app.migrate()

    asyncio.run(do())


def connect() -> None:
    """Open its pool."""
    app.sync_pool.open()


def enqueue(number: int, ms: int) -> None:
    """One INSERT and its notification, in a transaction."""
    app.sync_push(_job(number, ms))


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """Its bulk call."""
    jobs = [_job(number, ms) for number in numbers]
    for _ in app.sync_push_many(jobs, batch_size=CHUNK):
        pass


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The job's row; nobody is notified."""
    connection.execute(BARE, [uuid4(), json.dumps({"number": number, "ms": 0})])


def _job(number: int, ms: int) -> Job:
    return work.job.with_kwargs(number=number, ms=ms)


async def _declare(concurrency: int) -> None:
    queue = Queue(
        "default",
        executor=Chancy.Executor.Async,
        concurrency=concurrency,
        eager_polling=True,
    )
    async with app:
        await app.declare(queue, upsert=True)


if __name__ == "__main__":
    asyncio.run(_declare(int(sys.argv[1])))
    command = str(Path(sys.executable).with_name("chancy"))
    where = "benchmarks.apps.chancy_app.app"
    os.execv(command, [command, "--app", where, "worker", "start"])
