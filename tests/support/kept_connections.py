"""Connections whose sessions outlive their test: to make one, and to plan its first
statements, takes longer than most tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import psycopg
import pytest
from django.db import connections
from psycopg.pq import TransactionStatus

from django_jobqueue.conf import conf
from django_jobqueue.store import session
from django_jobqueue.store.bounded_connection import BoundedConnection
from django_jobqueue.store.connection import OwnConnection

NAME: Final = "kept for the next test"
MOST: Final = 2  # of each kind
# All that a test may have left in a session, but for its prepared statements.
TIDY: Final = """
RESET ROLE; RESET ALL; UNLISTEN *; CLOSE ALL; DISCARD TEMP;
SELECT pg_advisory_unlock_all()
"""

_idle: dict[Hashable, list[BoundedConnection]] = defaultdict(list)


class KeptConnection(OwnConnection):
    """Takes over the session that its like has left, perhaps in a test before."""

    _was_given_out = False  # to whom may have listened, or done anything else

    def raw(self) -> AbstractContextManager[BoundedConnection]:
        """As always; but such a session goes to nobody else."""
        self._was_given_out = True
        return super().raw()

    def close(self) -> None:
        """Leave the session to the next one, if it is sound."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        idle = _idle[self._kind]
        is_idle = connection.info.transaction_status is TransactionStatus.IDLE
        try:
            if is_idle and not self._was_given_out and len(idle) < MOST:
                name = f"SET application_name = '{NAME}'"
                connection.execute(f"{TIDY}; {name}", prepare=False)
                idle.append(connection)
                return
        except psycopg.Error:
            pass
        connection.close()

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
                if not self.pooled:
                    session.configure(connection, self.plans, self._patience)
            except psycopg.Error:
                connection.close()
            else:
                connection.bound = conf.statement_timeout + 5
                return connection
        return super()._connect()


@pytest.fixture(scope="session")
def kept_connections(django_db_setup: Any) -> Iterator[None]:
    """Their sessions end before the database does."""
    yield
    for idle in _idle.values():
        for connection in idle:
            connection.close()
    _idle.clear()
