"""Enqueues tasks of django-ox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import django
import psycopg
from django.core.management import call_command

CHUNK: Final = 10_000  # tasks of one enqueue_many
BARE: Final = """
INSERT INTO django_ox_oxtask (
       id, task_path, args, kwargs, queue_name, priority, takes_context, backend_name,
       status, attempts, max_attempts, errors, worker_ids, enqueued_at, lease_epoch)
VALUES (%s, 'benchmarks.apps.django_tasks.work', %s, '{}', 'default', 0, false,
        'default', 'READY', 0, 3, '[]', '[]', now(), 0)
"""


def install() -> None:
    """Migrate."""
    django.setup()
    call_command("migrate", verbosity=0)


def connect() -> None:
    """Set Django up; it connects when it has to."""
    django.setup()


def enqueue(number: int, ms: int) -> None:
    """One INSERT through the ORM, in autocommit mode."""
    from benchmarks.apps.django_tasks import work

    work.enqueue(number, ms)


def enqueue_many(numbers: Sequence[int], ms: int, is_async: bool) -> None:
    """Its bulk call, for each chunk."""
    from django_ox.bulk import enqueue_many

    from benchmarks.apps.django_tasks import work

    for start in range(0, len(numbers), CHUNK):
        part = numbers[start : start + CHUNK]
        enqueue_many(work, [((number, ms), {}) for number in part])


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The same row."""
    connection.execute(BARE, [uuid4(), json.dumps([number, 0])])
