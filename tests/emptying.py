"""Empties the database after a test that committed.

Django's flush truncates every table, then makes content types and permissions anew: by
far the most that such a test costs. Most leave a few rows in a few tables.
"""

from __future__ import annotations

from typing import Final

from django.db import connections, transaction
from django.test import TransactionTestCase

from django_jobqueue.apps import _declare

KEPT: Final = {"django_content_type", "auth_permission"}  # the flush makes them anew
LARGE: Final = 1 << 20  # bytes: a table with many rows, dead ones too

_flush = TransactionTestCase._fixture_teardown


def empty(test: TransactionTestCase) -> None:
    """Delete all rows, and declare job types as a migration does."""
    if type(test).databases != {"default"} or not _delete():
        _flush(test)


def _delete() -> bool:
    """Whether all rows could be deleted: there are not too many."""
    connection = connections["default"]
    tables = connection.introspection.django_table_names(only_existing=True)
    names = [name for name in tables if name not in KEPT]
    exists = ", ".join(f'EXISTS (SELECT FROM "{name}")' for name in names)
    largest = ", ".join(f"pg_relation_size('\"{name}\"')" for name in names)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT greatest({largest}), ARRAY[{exists}]")
        size, filled = cursor.fetchone()
        if size > LARGE:
            return False
        # Neither foreign keys nor triggers, as in a TRUNCATE.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for name, has_rows in zip(names, filled, strict=True):
            if has_rows:
                cursor.execute(f'DELETE FROM "{name}"')
    _declare(using="default")
    return True
