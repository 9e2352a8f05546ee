"""The two ways to the database, and the one place where its errors are sorted.

``DjangoDatabase`` is the caller's connection: its transaction, its errors.
``OwnConnection`` is the machinery's: bounded in time, reconnecting. It turns every
error that may pass with time into ``StoreUnavailable``, which says when to try again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC
from itertools import count
from typing import Any, Final, Protocol, TypeVar

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, ProgrammingError, connections, transaction

from django_jobqueue.conf import conf
from django_jobqueue.domain.databases import POSTGRESQL, check_alias, vendor_problem
from django_jobqueue.domain.log_events import Event
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store import missing_tables, session
from django_jobqueue.store.errors import (
    CONTENDED,
    NEEDS_MIGRATE,
    ROLLED_BACK,
    in_a_line,
    is_conflict,
    is_passing,
)
from django_jobqueue.store.outage_log import OutageLog, call_errors, outages
from django_jobqueue.store.prepared import PreparedStatement
from django_jobqueue.store.session import BoundedConnection, UTCLoader
from django_jobqueue.store.transactions import OpenTransaction, read_committed

logger = logging.getLogger("django_jobqueue.database")

Params = Mapping[str, Any]
T = TypeVar("T")

MOST_TRIES: Final = 8  # about a second
EMPTY: Final[Params] = {}
LONGEST_PAUSE: Final = 5.0
SHORTEST_PAUSE: Final = 0.05

_usable: set[str] = set()  # aliases of databases that jobs can be in
_CACHED_CURSOR = "_jobqueue_cursor"


class Database(Protocol):
    """The interface that a store verb needs of a connection."""

    def fetch(self, statement: str, params: Params = ...) -> list[tuple[Any, ...]]:
        """Run a statement that has rows, and return them."""
        ...

    def run(self, statement: str, params: Params = ...) -> None:
        """Run a statement that has none."""
        ...

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        """Run statements in one transaction; return each one's rows."""
        ...


class DjangoDatabase:
    """The caller's Django connection, in whatever transaction is open there.

    Where none is, a statement is a transaction by itself, and is tried again when
    another transaction came in between: under ``repeatable read`` or ``serializable``
    that is so for whatever changes a row that was just changed.
    """

    def __init__(self, alias: str | None = None) -> None:
        self.alias = conf.database if alias is None else alias
        if self.alias not in _usable:
            lasts = check_alias(self.alias, is_given=alias is not None)
            _usable.update({self.alias} if lasts else ())

    def fetch(self, statement: str, params: Params = EMPTY) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. Raises what Django raises."""

        def fetch() -> list[tuple[Any, ...]]:
            with self._cursor() as cursor:
                self._execute(cursor, statement, params)
                rows: list[tuple[Any, ...]] = cursor.fetchall()
                return rows

        return self._again(fetch)

    def fetch_row(self, statement: str, params: Params) -> tuple[Any, ...]:
        """Run a statement that is run often, and return its one row; empty if it has
        none.

        On one of Django's cursors that is kept as long as the connection: to make
        another one each time costs a tenth of an INSERT.
        """
        wrapper = connections[self.alias]
        connection, cursor = vars(wrapper).get(_CACHED_CURSOR, (None, None))
        if connection is None or connection is not wrapper.connection:
            cursor = self._cursor()
            if not wrapper.queries_logged:
                setattr(wrapper, _CACHED_CURSOR, (wrapper.connection, cursor))
        elif wrapper.queries_logged:
            cursor = self._cursor()  # one that logs
        try:
            self._execute(cursor, statement, params)
        except OperationalError:
            if not wrapper.get_autocommit():
                raise
            rows = self.fetch(statement, params)  # raises it again, if it is the same
            return rows[0] if rows else ()
        row: tuple[Any, ...] = cursor.fetchone() or ()
        return row

    def run(self, statement: str, params: Params = EMPTY) -> None:
        """Run a statement that has no rows. Raises what Django raises."""

        def run() -> None:
            with self._wrapper().cursor() as cursor:
                self._execute(cursor, statement, params)

        self._again(run)

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        """Run statements in one transaction, or in the one that is open; return each
        one's rows."""
        return self.in_transaction(
            lambda: [self.fetch(statement, params) for statement, params in statements]
        )

    def in_transaction(self, work: Callable[[], T]) -> T:
        """Do this in one transaction, or in the one that is open.

        One of our own is ``read committed``, whatever the project's default: each
        statement sees what those that it waited for have done.
        """
        wrapper = self._wrapper()
        if not wrapper.get_autocommit():
            with transaction.atomic(using=self.alias):
                return work()

        def begin() -> T:
            with read_committed(wrapper), transaction.atomic(using=self.alias):
                return work()

        return self._again(begin)

    def _wrapper(self) -> Any:
        """Django's connection. Raises ImproperlyConfigured if it is of another kind."""
        wrapper = connections[self.alias]
        if wrapper.vendor != POSTGRESQL:  # its own error would puzzle
            raise ImproperlyConfigured(vendor_problem(self.alias))
        return wrapper

    def _cursor(self) -> Any:
        """One of Django's, whose times are in UTC also where others are local ones."""
        wrapper = self._wrapper()
        cursor = wrapper.cursor()
        if wrapper.timezone is not UTC:
            cursor.adapters.register_loader("timestamptz", UTCLoader)
        return cursor

    def _again(self, work: Callable[[], T]) -> T:
        """Do this, which is a transaction, until no other one comes in between."""
        for tries in count(1):
            try:
                return work()
            except OperationalError as error:
                is_alone = connections[self.alias].get_autocommit()
                if not (is_conflict(error) and is_alone) or tries == MOST_TRIES:
                    raise
            time.sleep(random.uniform(0, 0.005 * 2**tries))
        raise AssertionError("unreachable")

    def _execute(self, cursor: Any, statement: str, params: Params) -> None:
        try:
            cursor.execute(statement, params)
        except ProgrammingError as error:
            raise missing_tables.explained(error, self.alias) from error.__cause__


class OwnConnection:
    """A connection of the machinery's own; made at first use, and again after a
    loss."""

    def __init__(
        self,
        purpose: str,
        *,
        plans: Params = EMPTY,
        pooled: bool = False,
        patience: float = session.PATIENCE,
        on_connect: Callable[[OwnConnection], None] = lambda connection: None,
    ) -> None:
        """``on_connect`` may refuse each connection that is made: StoreUnavailable."""
        self.purpose = purpose  # application_name in pg_stat_activity
        self.plans = plans  # settings of the planner
        self.pooled = pooled  # behind a transaction pooler: no state in the session
        self._patience = patience  # seconds that a statement waits for a lock
        self._on_connect = on_connect
        self._connection: BoundedConnection | None = None
        self._failures = 0
        self._is_brief = False  # lock timeouts are expected
        self._connected_at = 0.0  # time.monotonic()
        self._errors = OutageLog(Event.DATABASE_ERROR)  # that are no outages

    def fetch(self, statement: str, params: Params = EMPTY) -> list[tuple[Any, ...]]:
        """Run one statement, in a transaction of its own, and return its rows.

        Raises StoreUnavailable for whatever time may heal.
        """
        if isinstance(statement, PreparedStatement) and not self.pooled:
            try:  # without a context manager: this is on the way of each job
                rows = self._connected().fetch_prepared(statement, params)
            except psycopg.Error as error:
                if (sorted_error := self._sort(error)) is error:
                    raise
                raise sorted_error from error
            self._works()
            return rows
        with self._sorted() as connection:
            return self._execute(connection, statement, params).fetchall()

    def run(self, statement: str, params: Params = EMPTY) -> None:
        """The same for a statement that has no rows."""
        with self._sorted() as connection:
            self._execute(connection, statement, params)

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        """Run statements in one transaction and one round trip; return each one's
        rows."""
        with self._sorted() as connection:
            prepared = [
                (s, p) for s, p in statements if isinstance(s, PreparedStatement)
            ]
            if not self.pooled and len(prepared) == len(statements):
                return connection.fetch_all_prepared(prepared)
            with connection.pipeline(), connection.transaction():
                if self.pooled:
                    session.pin(connection, self.plans, self._patience)
                cursors = [
                    connection.cursor(binary=True).execute(statement, params)
                    for statement, params in statements
                ]
            return [cursor.fetchall() for cursor in cursors]

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Statements in one transaction, which is committed at the end of the block;
        so what they return is known even if the answer of the commit is lost."""
        with self._sorted() as connection, connection.transaction():
            if self.pooled:
                session.pin(connection, self.plans, self._patience)
            yield OpenTransaction(connection)

    @contextmanager
    def raw(self) -> Iterator[BoundedConnection]:
        """The psycopg connection itself; errors are sorted as in ``fetch``."""
        with self._sorted() as connection:
            yield connection

    def patience(self, seconds: float) -> AbstractContextManager[None]:
        """Statements wait no longer than this for a lock meanwhile. Whoever says so
        deals with the lock timeouts; the log does not name them."""
        return _Patience(self, seconds)

    def close(self) -> None:
        """Let go of the connection; the next call makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except psycopg.Error:
                logger.debug("Closing a broken connection failed", exc_info=True)

    def _execute(
        self, connection: BoundedConnection, statement: str, params: Params
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        cursor = connection.cursor(binary=True)
        if not self.pooled:
            return cursor.execute(statement, params)
        with connection.transaction():
            session.pin(connection, self.plans, self._patience)
            return cursor.execute(statement, params)

    @contextmanager
    def _sorted(self) -> Iterator[BoundedConnection]:
        """Give out the connection; turn passing errors into StoreUnavailable."""
        try:
            yield self._connected()
        except psycopg.Error as error:
            if (sorted_error := self._sort(error)) is error:
                raise
            raise sorted_error from error
        self._works()

    def _connected(self) -> BoundedConnection:
        """The connection, with its patience. Raises psycopg.Error."""
        if self._connection is None:
            self._connection = self._connect()
            try:
                self._on_connect(self)
            except BaseException:
                self.close()
                raise
        elif self._connection.patience != self._patience and not self.pooled:
            session.set_patience(self._connection, self._patience)
        return self._connection

    def _sort(self, error: psycopg.Error) -> Exception:
        """The exception to raise for this one: itself, if time will not heal it."""
        code = error.sqlstate or ""
        if not (self._is_brief and code in CONTENDED):
            call_errors.count += 1
        if not is_passing(error):
            return error
        if code not in ROLLED_BACK:
            self.close()
        if self._is_brief and code in CONTENDED:
            return _contended(error)
        return self._unavailable(error, code)

    def _works(self) -> None:
        """The last statement did not fail."""
        if self._failures:
            for log in (outages, self._errors):
                log.back(self.purpose, self._failures)
            self._failures = 0

    def _connect(self) -> BoundedConnection:
        parameters = {
            **session.connection_parameters(),
            "prepare_threshold": None if self.pooled else 0,
            "application_name": f"jobqueue {self.purpose}",
        }
        connection = BoundedConnection.connect(autocommit=True, **parameters)
        connection.bound = conf.statement_timeout + 5
        self._connected_at = time.monotonic()
        if self.pooled:  # each statement is in a block, which begins so
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        else:
            session.configure(connection, self.plans, self._patience)
        return connection

    def _unavailable(self, error: psycopg.Error, code: str) -> StoreUnavailable:
        self._failures += 1
        longest = min(LONGEST_PAUSE, SHORTEST_PAUSE * 2 ** min(self._failures, 10))
        text = in_a_line(error)
        if code in NEEDS_MIGRATE:
            text += " (run manage.py migrate, or open the schema to the role)"
        is_outage = code not in ROLLED_BACK
        log = outages if is_outage else self._errors
        log.lost(self.purpose, text, self._connected_at)
        return StoreUnavailable(
            text, retry_in=longest * random.uniform(0.5, 1), is_outage=is_outage
        )


class _Patience(AbstractContextManager[None]):
    """See ``OwnConnection.patience``: a class, since each claim passes it."""

    def __init__(self, connection: OwnConnection, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds

    def __enter__(self) -> None:
        connection = self._connection
        self._before = connection._patience
        connection._patience = min(self._seconds, self._before)
        connection._is_brief = True

    def __exit__(self, *error: object) -> None:
        self._connection._patience = self._before
        self._connection._is_brief = False


def _contended(error: psycopg.Error) -> StoreUnavailable:
    return StoreUnavailable(in_a_line(error), retry_in=SHORTEST_PAUSE, is_outage=False)
