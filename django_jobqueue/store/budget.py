"""How long the statements of a transaction may take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.db import OperationalError, transaction

from django_jobqueue.store.connection import Database, DjangoDatabase

# Local: a rollback, also one to a savepoint, brings the former limit back.
LIMIT_TIME: Final = "SELECT set_config('statement_timeout', %(limit)s, true)"


def limit_time(db: Database, milliseconds: int) -> None:
    """Let no further statement of this transaction take longer."""
    db.fetch(LIMIT_TIME, {"limit": str(milliseconds)})


def in_time(
    db: DjangoDatabase, milliseconds: int, ask: Callable[[], list[tuple[Any, ...]]]
) -> list[tuple[Any, ...]] | None:
    """What this question, which only reads, is answered; None if it takes longer."""
    try:
        with transaction.atomic(using=db.alias):
            limit_time(db, milliseconds)
            rows = ask()
            transaction.set_rollback(True, using=db.alias)
            return rows
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return None
        raise
