"""Connections whose sessions outlive their test: to make one, and to plan its first
statements, takes longer than most tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final
from unittest.mock import patch

import psycopg
import pytest
from django.db import connections
from psycopg.pq import TransactionStatus

from django_jobqueue.conf import conf
from django_jobqueue.store import session
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.session import BoundedConnection

NAME: Final = "kept for the next test"
MOST: Final = 2  # of each kind
# All that a test may have left in a session, but for its prepared statements.
TIDY: Final = """
RESET ROLE; RESET ALL; UNLISTEN *; CLOSE ALL; DISCARD TEMP;
SELECT pg_advisory_unlock_all()
"""
# What a session of this database begins with, if a test has altered that.
ALTERED: Final = """
SELECT FROM pg_db_role_setting
  JOIN pg_database ON pg_database.oid = setdatabase
 WHERE datname = current_database()
"""

_idle: dict[Hashable, list[BoundedConnection]] = defaultdict(list)


class KeptConnection(OwnConnection):
    """Takes over the session that its like has left, perhaps in a test before."""

    _is_sound = True  # nobody had it in hand, who may have listened, or anything else

    def raw(self) -> AbstractContextManager[BoundedConnection]:
        """As always; but such a session goes to nobody else."""
        self._is_sound = False
        return super().raw()

    def leave(self) -> None:
        """Leave the session to the next one, if it is sound; else close it.

        ``close`` ends it as ever, so that what closes a connection, as each error of
        an outage does, gets another one.
        """
        connection = self._connection
        if connection is None:
            return
        idle = _idle[self._kind]
        is_idle = connection.info.transaction_status is TransactionStatus.IDLE
        if is_idle and self._is_sound and len(idle) < MOST:
            name = f"SET application_name = '{NAME}'"
            try:
                connection.execute(f"{TIDY}; {name}", prepare=False)
            except psycopg.Error:
                pass
            else:
                idle.append(connection)
                self._connection = None
        super().close()

    @property
    def _kind(self) -> Hashable:
        database = connections[conf.database].settings_dict
        return (
            *(str(database[name]) for name in ("HOST", "PORT", "NAME", "USER")),
            *(self.purpose, self.pooled, *sorted(self.plans.items())),
        )

    # private: the seam where a connection is made
    def _connect(self) -> BoundedConnection:
        idle = _idle[self._kind]
        while idle:
            connection = idle.pop()
            try:
                connection.execute("RESET application_name", prepare=False)
                altered = connection.execute(ALTERED, prepare=False)
                if not altered.rowcount:
                    if not self.pooled:
                        # private: as its own connection is made
                        session.configure(connection, self.plans, self._patience)
                    connection.bound = conf.statement_timeout + 5
                    return connection
            except psycopg.Error:
                pass
            connection.close()
        connection = super()._connect()
        if connection.execute(ALTERED, prepare=False).rowcount:
            self._is_sound = False
        return connection


@contextmanager
def leaving() -> Iterator[None]:
    """Whoever closes a connection meanwhile leaves its session to the next test."""
    with patch.object(KeptConnection, "close", KeptConnection.leave):
        yield


@pytest.fixture(scope="session")
def kept_connections(django_db_setup: Any) -> Iterator[None]:
    """Their sessions end before the database does."""
    yield
    for idle in _idle.values():
        for connection in idle:
            connection.close()
    _idle.clear()
