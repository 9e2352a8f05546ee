"""Transactions on a connection of ours, and on one of Django."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

if TYPE_CHECKING:
    from django_jobqueue.store.connection import Params


class OpenTransaction:
    """A database for the store's verbs; whoever opened the transaction ends it."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def fetch(
        self, statement: str, params: Params | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""
        return self._execute(statement, params).fetchall()

    def run(self, statement: str, params: Params | None = None) -> None:
        """Run a statement that has none."""
        self._execute(statement, params)

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        """Run statements; return each one's rows."""
        return [self.fetch(statement, params) for statement, params in statements]

    def _execute(
        self, statement: str, params: Params | None
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = self._connection.cursor(binary=True)
        return cursor.execute(statement, params or {})


@contextmanager
def read_committed(wrapper: Any) -> Iterator[None]:
    """Transactions of this connection, which has none open, are so meanwhile."""
    wrapper.ensure_connection()
    raw = wrapper.connection
    before, raw.isolation_level = (
        raw.isolation_level,
        psycopg.IsolationLevel.READ_COMMITTED,
    )
    try:
        yield
    finally:
        if raw is wrapper.connection and not raw.closed:
            raw.isolation_level = before
