"""The settings of our own sessions: limits of time, and the planner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.db import connections
from psycopg import sql

from django_jobqueue.conf import conf
from django_jobqueue.store.bounded_connection import BoundedConnection

PATIENCE: Final = 2.0  # seconds that a statement waits for a lock
_DRIVER_OPTIONS: Final = (
    "context",
    "cursor_factory",
    "prepare_threshold",
    "row_factory",
)


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
