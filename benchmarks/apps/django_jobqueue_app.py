"""Enqueues our own jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import django
import psycopg
from django.core.management import call_command

from benchmarks.apps.jobs import awork, work
from django_jobqueue.domain.ids import new_id

CHUNK: Final = 10_000  # jobs of one enqueue_many
BARE: Final = """
INSERT INTO jobqueue_queuedjob (
       id, job_type, queue, priority, data, run_after, created_at)
VALUES (%s, %s, 'default', 0, %s, statement_timestamp(), statement_timestamp())
"""
COPY: Final = """
COPY jobqueue_queuedjob (id, job_type, queue, priority, run_after, data) FROM STDIN
"""


def install() -> None:
    """Migrate."""
    django.setup()
    call_command("migrate", verbosity=0)


def connect() -> None:
    """Set Django up; it connects when it has to."""
    django.setup()


def enqueue(number: int, ms: int) -> None:
    """One INSERT, in autocommit mode."""
    work.enqueue(number=number, ms=ms)


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """One COPY for each chunk."""
    handler = awork if is_async else work
    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        handler.enqueue_many({"number": number, "ms": ms} for number in part)


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The same row, with a new id and its data made here."""
    data = json.dumps({"number": number, "ms": 0})
    connection.execute(BARE, [new_id(), work.name, data])


def rows(numbers: Sequence[int]) -> bytes:
    """The same rows in the text format of COPY."""
    moment = datetime.now(UTC).isoformat()
    return "".join(
        f"{new_id()}\t{work.name}\tdefault\t0\t{moment}\t"
        f'{{"number": {number}, "ms": 0}}\n'
        for number in numbers
    ).encode()


def copy(connection: psycopg.Connection[Any], rows: bytes) -> None:
    """One COPY."""
    with connection.cursor() as cursor, cursor.copy(COPY) as to:
        to.write(rows)
