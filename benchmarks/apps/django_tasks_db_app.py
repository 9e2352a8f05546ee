"""Enqueues tasks of django-tasks-db."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

import django
import psycopg
from django.core.management import call_command
from django.db import transaction

CHUNK: Final = 1_000  # tasks of one transaction
BARE: Final = """
INSERT INTO django_tasks_database_dbtaskresult (
       id, status, enqueued_at, args_kwargs, priority, task_path, worker_ids,
       queue_name, backend_name, run_after, exception_class_path, traceback)
VALUES (%s, 'READY', now(), %s, 0, 'benchmarks.apps.django_tasks.work',
        '[]', 'default', 'default', '9999-01-01 00:00+00', '', '')
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
    """It has no bulk call; what can be saved is commits."""
    for start in range(0, len(numbers), CHUNK):
        with transaction.atomic():
            for number in numbers[start : start + CHUNK]:
                enqueue(number, ms)


def insert(connection: psycopg.Connection[Any], number: int) -> None:
    """The same row."""
    data = json.dumps({"args": [number, 0], "kwargs": {}})
    connection.execute(BARE, [uuid4(), data])
