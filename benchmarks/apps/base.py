"""What the enqueuing module of a system offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import psycopg


class App(Protocol):
    """A module of this package."""

    def connect(self) -> None:
        """Get ready to enqueue."""

    def enqueue(self, number: int, ms: int) -> None:
        """Enqueue one job, in a transaction of its own."""

    def enqueue_many(self, numbers: Sequence[int], ms: int, is_async: bool) -> None:
        """Enqueue many, in the fastest way that is documented."""


class PostgresApp(App, Protocol):
    """One that keeps its jobs in PostgreSQL."""

    def install(self) -> None:
        """Make the tables in an empty database."""

    def insert(self, connection: psycopg.Connection[Any], number: int) -> None:
        """Write the row that ``enqueue`` writes, with nothing around it."""


class CopyingApp(PostgresApp, Protocol):
    """One whose bulk enqueue can be compared with a bare COPY."""

    def rows(self, numbers: Sequence[int]) -> bytes:
        """The rows that ``enqueue_many`` writes, as COPY takes them."""

    def copy(self, connection: psycopg.Connection[Any], rows: bytes) -> None:
        """Write these rows, with nothing around it."""


class SoakingApp(Protocol):
    """The one with jobs of all kinds."""

    def soak(self, seconds: float) -> dict[str, int]:
        """Enqueue them for so long; returns how many of each."""
