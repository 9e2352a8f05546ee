"""Limits the time of a transaction's statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.db import OperationalError, transaction

from django_jobqueue.store.connection import Database, DjangoDatabase

# Local: a rollback, also one to a savepoint, brings the former limit back.
LIMIT_TIME: Final = "SELECT set_config('statement_timeout', %(limit)s, true)"
LOWER_LIMIT: Final = """
SELECT set_config('statement_timeout', %(limit)s, true)
 WHERE current_setting('statement_timeout')::interval
       NOT BETWEEN interval '1 microsecond' AND %(longest)s::interval
"""


def limit_time(db: Database, milliseconds: int) -> None:
    """Let no further statement of this transaction take longer."""
    db.fetch(LIMIT_TIME, {"limit": str(milliseconds)})


def lower_limit(db: Database, milliseconds: int) -> None:
    """Set this limit, unless a lower one is in force already."""
    limit = {"limit": str(milliseconds), "longest": f"{milliseconds} ms"}
    db.fetch(LOWER_LIMIT, limit)


def is_too_long(error: OperationalError) -> bool:
    """True if a statement was stopped by its limit."""
    return isinstance(error.__cause__, psycopg.errors.QueryCanceled)


def in_time(
    db: DjangoDatabase, milliseconds: int, ask: Callable[[], list[tuple[Any, ...]]]
) -> list[tuple[Any, ...]] | None:
    """Answer a question that only reads; None if it takes longer than its limit."""
    try:
        with transaction.atomic(using=db.alias):
            limit_time(db, milliseconds)
            rows = ask()
            transaction.set_rollback(True, using=db.alias)
            return rows
    except OperationalError as error:
        if is_too_long(error):
            return None
        raise
