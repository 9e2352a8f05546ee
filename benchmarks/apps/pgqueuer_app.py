"""PgQueuer: SyncQueries to enqueue, ``pgq run`` to work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from pgqueuer import PgQueuer
from pgqueuer.db import PsycopgDriver, SyncPsycopgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries, SyncQueries

from benchmarks import journal

CHUNK: Final = 10_000  # jobs of one enqueue
THREADS: Final = 100  # for sync functions
BARE: Final = """
INSERT INTO pgqueuer (priority, entrypoint, payload, execute_after, status)
VALUES (0, 'work', %s, now(), 'queued')
"""

_queries: list[SyncQueries] = []


def install() -> None:
    """Its schema, and its advice for autovacuum."""

    async def do() -> None:
        connection = await psycopg.AsyncConnection.connect(autocommit=True)
        queries = Queries(PsycopgDriver(connection))
        await queries.install()
        await queries.optimize_autovacuum()
        await connection.close()

    asyncio.run(do())


def connect() -> None:
    """A connection in autocommit mode."""
    connection = psycopg.connect(autocommit=True)
    _queries.append(SyncQueries(SyncPsycopgDriver(connection)))


def enqueue(number: int, ms: int) -> None:
    """One statement, in autocommit mode."""
    _queries[0].enqueue("work", _payload(number, ms))


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """One statement for each chunk."""
    entrypoint = "work" if is_async or not ms else "work_in_thread"
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        payloads: list[bytes | None] = [_payload(number, ms) for number in part]
        _queries[0].enqueue([entrypoint] * len(part), payloads, [0] * len(part))


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The job's row; its trigger notifies. The log's row is left out."""
    connection.execute(BARE, [_payload(number, 0)])


@asynccontextmanager
async def main() -> AsyncIterator[PgQueuer]:
    """What ``pgq run`` runs."""
    pool = ThreadPoolExecutor(THREADS)
    asyncio.get_running_loop().set_default_executor(pool)
    connection = await psycopg.AsyncConnection.connect(autocommit=True)
    pgqueuer = PgQueuer.from_psycopg_connection(connection)

    @pgqueuer.entrypoint("work")
    async def work(job: Job) -> None:
        await journal.awork(*_arguments(job))

    @pgqueuer.entrypoint("work_in_thread")
    async def work_in_thread(job: Job) -> None:
        await asyncio.to_thread(journal.work, *_arguments(job))

    yield pgqueuer


def _payload(number: int, ms: int) -> bytes:
    return b"%d %d" % (number, ms)


def _arguments(job: Job) -> tuple[int, int]:
    number, ms = (job.payload or b"").split()
    return int(number), int(ms)
