"""What the enqueuing module of a system offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import psycopg


class App(Protocol):
    """A module of this package."""

    def install(self) -> None:
        """Make the tables in an empty database."""

    def connect(self) -> None:
        """Get ready to enqueue."""

    def enqueue(self, number: int, ms: int) -> None:
        """Enqueue one job, in a transaction of its own."""

    def enqueue_many(self, numbers: Sequence[int], ms: int, is_async: bool) -> None:
        """Enqueue many, in the fastest way that is documented."""

    def insert(self, connection: psycopg.Connection[Any], number: int) -> None:
        """Write the row that ``enqueue`` writes, with nothing around it."""
