"""Our own sessions: calls that never wait forever, and the settings of the planner."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import psycopg
from django.db import connections
from psycopg import sql
from psycopg.types.datetime import TimestamptzLoader
from psycopg.types.json import set_json_loads

from django_jobqueue.conf import conf
from django_jobqueue.store.prepared import (
    Prepared,
    PreparedStatement,
    all_results,
    pipelined,
)
from django_jobqueue.text.json_reading import read_json

# Plans must not depend on statistics: autovacuum may have analysed the queue while it
# was empty, and a plan that sorts the backlog takes 110-540 ms a claim instead of 0.8.
# With these, the claim is index scans with any statistics, and as the plan cannot vary
# it need not be made again for every claim (force_generic_plan).
PINNED: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_sort": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "random_page_cost": "0.1",
    "jit": "off",
}
# The same for writing outcomes: each is found by its id in an index, and joined by a
# hash. What reads an index once for each row says so with LATERAL.
FINISHING: Final = {**PINNED, "enable_hashjoin": "on", "enable_nestloop": "off"}
PATIENCE: Final = 2.0  # seconds that a statement waits for a lock
_DRIVER_OPTIONS: Final = (
    "context",
    "cursor_factory",
    "prepare_threshold",
    "row_factory",
)


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


def connection_parameters() -> dict[str, Any]:
    """Django's own parameters for the database of the jobs, for a plain connection.

    A lost network is noticed in about five seconds instead of a minute or more, unless
    the project's OPTIONS say otherwise.
    """
    wrapper = connections.create_connection(conf.database)
    params: dict[str, Any] = wrapper.get_connection_params()
    for option in _DRIVER_OPTIONS:
        params.pop(option, None)
    return {
        "connect_timeout": 5,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 5_000,
        **params,
    }


def configure(
    connection: BoundedConnection, plans: Mapping[str, Any], patience: float
) -> None:
    """Set what this session needs, in one round trip."""
    values: dict[str, str] = {
        "statement_timeout": _statement_timeout(),
        "lock_timeout": lock_timeout(patience),
        "idle_in_transaction_session_timeout": _statement_timeout(),
        "default_transaction_isolation": "read committed",
        "tcp_user_timeout": "5000",
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "2",
        "tcp_keepalives_count": "3",
        "idle_session_timeout": "0",  # one that listens is idle
        **plans,
        **_role(),
    }
    statements = [
        sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
        for name, value in values.items()
    ]
    connection.execute(sql.SQL("; ").join(statements), prepare=False)
    connection.patience = patience


def set_patience(connection: BoundedConnection, patience: float) -> None:
    """Have the statements of this session wait at most this many seconds for a lock."""
    timeout = sql.Literal(lock_timeout(patience))
    connection.execute(sql.SQL("SET lock_timeout = {}").format(timeout), prepare=False)
    connection.patience = patience


def pin(
    connection: BoundedConnection, plans: Mapping[str, Any], patience: float
) -> None:
    """Set the same for one transaction, where the session is not ours."""
    values = {
        "statement_timeout": _statement_timeout(),
        "lock_timeout": lock_timeout(patience),
        **_role(),
    }
    values |= {k: v for k, v in plans.items() if k != "plan_cache_mode"}
    calls = [
        sql.SQL("set_config({}, {}, true)").format(name, value)
        for name, value in values.items()
    ]
    connection.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls)))


def lock_timeout(patience: float) -> str:
    """The setting, in milliseconds; never 0, which is no limit."""
    return str(max(1, int(min(patience, conf.statement_timeout) * 1000)))


def _role() -> dict[str, str]:
    """The role that Django's connection assumes."""
    role = connections.settings[conf.database].get("OPTIONS", {}).get("assume_role")
    return {"role": str(role)} if role else {}


def _statement_timeout() -> str:
    return str(int(conf.statement_timeout * 1000))


class UTCLoader(TimestamptzLoader):
    """Reads times as UTC, on connections of Django whose zone is a local one."""

    def load(self, data: Any) -> datetime:
        """The time that PostgreSQL wrote like this."""
        return super().load(data).astimezone(UTC)
