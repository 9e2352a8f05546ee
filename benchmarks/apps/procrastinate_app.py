"""procrastinate: ``defer`` to enqueue, ``procrastinate worker`` to work."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from procrastinate import App, PsycopgConnector

from benchmarks import journal

CHUNK: Final = 5_000  # jobs of one batch_defer
BARE: Final = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, args)
VALUES ('default', 'work', 0, %s)
"""

app = App(connector=PsycopgConnector(max_size=int(os.environ.get("BENCH_POOL", "4"))))


@app.task(name="work", queue="default")
async def work(number: int, ms: int) -> None:
    """The handler."""
    await journal.awork(number, ms)


def install() -> None:
    """Its schema."""
    with app.open():
        app.schema_manager.apply_schema()


def connect() -> None:
    """Open its pool."""
    app.open()


def enqueue(number: int, ms: int) -> None:
    """One call of its function in the database."""
    work.defer(number=number, ms=ms)


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """One call for each chunk."""
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        work.batch_defer(*({"number": number, "ms": ms} for number in part))


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The job's row; its triggers write events and notify."""
    connection.execute(BARE, [json.dumps({"number": number, "ms": 0})])
