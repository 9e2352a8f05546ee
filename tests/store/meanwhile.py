"""What happens at the same time: open transactions, threads, notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, connections

from django_jobqueue.store.connection import OwnConnection, Params
from django_jobqueue.store.notify import CHANNEL, CHANNEL_OF
from tests.support.waiting import eventually

WAITING = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


NONE_OLDER = """
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::numeric
       > %s::text::numeric
"""

Background = Callable[[Callable[[], Any]], Future[Any]]


class OpenTransaction:
    """A store's database that commits when the test says so."""

    def __init__(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._connection = connection

    def fetch(self, statement: str, params: Params = {}) -> list[tuple[Any, ...]]:  # noqa: B006
        return self._connection.execute(statement, params, binary=True).fetchall()

    def run(self, statement: str, params: Params = {}) -> None:  # noqa: B006
        self._connection.execute(statement, params)

    def lock(self, id: UUID, table: str = "jobqueue_queuedjob") -> None:
        """Lock this row."""
        self.fetch(f"SELECT FROM {table} WHERE id = %(id)s FOR UPDATE", {"id": id})


@contextmanager
def open_transaction(
    db: OwnConnection, *, undone: bool = False
) -> Iterator[OpenTransaction]:
    """A transaction that is committed at the end of the block, however long the test
    takes on a busy machine; or rolled back."""
    with db.raw() as raw, raw.transaction(force_rollback=undone):
        raw.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield OpenTransaction(raw)


def submit(pool: ThreadPoolExecutor, function: Callable[[], Any]) -> Future[Any]:
    """Call this in a thread of its own, whose connections are closed at its end."""
    return pool.submit(_and_close, function)


def together(functions: list[Callable[[], Any]]) -> list[Any]:
    """Call these at the same time, each in a thread; return what they returned."""
    with ThreadPoolExecutor(len(functions)) as pool:
        futures = [pool.submit(_and_close, function) for function in functions]
        return [future.result(60) for future in futures]


def until_older_transactions_end() -> None:
    """Wait for those that are open now, also of other tests: they share a server."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text")
        newest = cursor.fetchone()[0]

    def ended() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(NONE_OLDER, [newest])
            return bool(cursor.fetchone()[0])

    eventually(ended, within=120, what="older transactions to end")


def until_waiting(count: int = 1) -> None:
    """Wait until so many sessions wait for a lock."""
    eventually(lambda: waiting() >= count, what="sessions to wait")


def waiting() -> int:
    """How many sessions wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        count: int = cursor.fetchone()[0]
    return count


def _and_close(function: Callable[[], Any]) -> Any:
    try:
        return function()
    finally:
        connections.close_all()


def channel_of(db: OwnConnection, host: str) -> str:
    """The channel on which this host alone is told."""
    ((channel,),) = db.fetch(CHANNEL_OF, {"host": host})
    return str(channel)


class Hearing:
    """Hears what is notified, also what only these hosts are told."""

    def __init__(self, db: OwnConnection, *hosts: str) -> None:
        self._heard: list[str] = []
        channels = [CHANNEL, *(channel_of(db, host) for host in hosts)]
        with db.raw() as raw:
            self._raw = raw
            raw.add_notify_handler(lambda n: self._heard.append(n.payload))
            for channel in channels:
                raw.execute(f"LISTEN {channel}")

    def heard(self) -> list[str]:
        """What was notified since the last call, in order.

        Notifications arrive in the order of the commits, so after our own there is no
        other under way.
        """
        self._raw.execute(f"NOTIFY {CHANNEL}, 'end'")
        eventually(self._at_end, what="our own notification")
        heard, self._heard[:] = self._heard[:-1], []
        return heard

    def of_queues(self) -> list[str]:
        """The same of new jobs, whoever is told: ``q:`` and the queue."""
        return [
            text.replace("j:", "q:")
            for text in self.heard()
            if not text.startswith("n:")
        ]

    def _at_end(self) -> bool:
        self._raw.execute("SELECT 1")
        return self._heard[-1:] == ["end"]
