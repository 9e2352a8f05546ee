"""Connections whose calls never wait forever."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from django_jobqueue.store.prepared import (
    Prepared,
    PreparedStatement,
    all_results,
    pipelined,
)
from django_jobqueue.text.json_reading import read_json


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A psycopg connection none of whose calls can wait forever.

    TCP's own timers do not end a call through a proxy that keeps the connection open
    and stays silent, so the waiting itself has a deadline.
    """

    bound: float = 15.0  # seconds
    patience: float = 0.0  # seconds; its lock_timeout, as it was set last

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        set_json_loads(read_json, self)
        self._prepared_here: dict[PreparedStatement, Prepared] = {}

    def fetch_prepared(
        self, statement: PreparedStatement, params: Mapping[str, Any]
    ) -> list[Any]:
        """Run one in a transaction of its own, and return its rows."""
        prepared = self._prepared_here.get(statement)
        if prepared is not None:
            with suppress(psycopg.errors.InvalidSqlStatementName):
                return prepared.rows(self, params)
            # After a rollback psycopg has the server forget all that is prepared.
        prepared = self._prepared_here[statement] = Prepared(self, statement)
        return prepared.rows(self, params)

    def fetch_all_prepared(
        self, calls: Sequence[tuple[PreparedStatement, Mapping[str, Any]]]
    ) -> list[list[Any]]:
        """Run several in one transaction and one round trip; return each one's rows."""
        prepared_here = self._prepared_here
        if all(statement in prepared_here for statement, _ in calls):
            with suppress(psycopg.errors.InvalidSqlStatementName):
                return pipelined(self, [(prepared_here[s], p) for s, p in calls])
        for statement, _ in calls:
            prepared_here[statement] = Prepared(self, statement)
        return pipelined(self, [(prepared_here[s], p) for s, p in calls])

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server, but not for longer than ``bound`` seconds."""
        return super().wait(_bounded(self, gen, self.bound), *args, **kwargs)


def _bounded(
    connection: psycopg.Connection[Any], gen: Any, seconds: float
) -> Generator[Any, Any, Any]:
    """Wait as psycopg does, but no longer than this."""
    deadline = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                connection.close()  # or the way out of a transaction waits again
                raise psycopg.OperationalError(
                    f"no answer from the database within {seconds:g} s"
                )
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


def run_bounded(
    connection: psycopg.Connection[Any], statements: str, seconds: float
) -> None:
    """Run statements, separated by semicolons, on any idle connection.

    Raises psycopg.Error, also if there is no answer within this many seconds; the
    connection is closed then.
    """
    with connection.lock:
        connection.pgconn.send_query(statements.encode())
        results = connection.wait(
            _bounded(connection, all_results(connection.pgconn), seconds)
        )
    for result in results:
        if result.status == psycopg.pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
