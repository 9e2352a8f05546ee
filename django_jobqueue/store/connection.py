"""The two ways to the database, and the one place where its troubles are sorted.

``DjangoDatabase`` is the caller's connection: its transaction, its errors.
``OwnConnection`` is the machinery's: bounded in time, reconnecting, and every trouble
that time may heal is one ``StoreUnavailable`` that says when to try again.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import psycopg
from django.db import connections, transaction
from psycopg import sql

from django_jobqueue.conf import conf
from django_jobqueue.databases import check_alias
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.hot import HotStatement, Prepared
from django_jobqueue.store.transactions import OpenTransaction

logger = logging.getLogger(__name__)

Params = Mapping[str, Any]

EMPTY: Final[Params] = {}
LONGEST_REST: Final = 5.0
SHORTEST_REST: Final = 0.05

# Troubles that pass: nobody exits for one. Classes and codes are those of PostgreSQL's
# manual, appendix A.
_PASSING_CLASSES = ("08", "53", "57", "58")  # connection, resources, operator, system
_PASSING_CODES = (
    "25006",  # read-only: a demoted server
    "25P03",  # idle in transaction for too long: the session is ended
    "25P04",  # a transaction that took too long: the session is ended
    "40001",  # serialisation failure
    "40P01",  # deadlock
    "55P03",  # lock timeout
    "42P01",  # unknown table: not migrated yet
    "42703",  # unknown column: not migrated yet
    "42883",  # unknown function: not migrated yet
)
NEEDS_MIGRATE = ("42P01", "42703", "42883")
_ROLLED_BACK = (
    "40001",
    "40P01",
    "55P03",
    "57014",
    *NEEDS_MIGRATE,
)  # connection is well

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
_usable: set[str] = set()  # aliases of databases that jobs can be in
_KEPT_CURSOR = "_jobqueue_cursor"
_DRIVER_OPTIONS = ("context", "cursor_factory", "prepare_threshold", "row_factory")


class Database(Protocol):
    """What a store verb needs of a connection."""

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
    """The caller's Django connection, in whatever transaction is open there."""

    def __init__(self, alias: str | None = None) -> None:
        self.alias = conf.database if alias is None else alias
        if self.alias not in _usable:
            check_alias(self.alias, is_given=alias is not None)
            _usable.add(self.alias)

    def fetch(self, statement: str, params: Params = EMPTY) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows. Raises what Django raises."""
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def fetch_row(self, statement: str, params: Params) -> tuple[Any, ...]:
        """Run a statement that is run often, and return its one row.

        On one of Django's cursors that is kept as long as the connection: to make
        another one each time costs a tenth of an INSERT.
        """
        wrapper = connections[self.alias]
        connection, cursor = vars(wrapper).get(_KEPT_CURSOR, (None, None))
        if connection is None or connection is not wrapper.connection:
            cursor = wrapper.cursor()
            if not wrapper.queries_logged:
                setattr(wrapper, _KEPT_CURSOR, (wrapper.connection, cursor))
        elif wrapper.queries_logged:
            cursor = wrapper.cursor()  # one that logs
        cursor.execute(statement, params)
        row: tuple[Any, ...] = cursor.fetchone()
        return row

    def run(self, statement: str, params: Params = EMPTY) -> None:
        """Run a statement that has no rows. Raises what Django raises."""
        with connections[self.alias].cursor() as cursor:
            cursor.execute(statement, params)

    def fetch_all(
        self, statements: list[tuple[str, Params]]
    ) -> list[list[tuple[Any, ...]]]:
        """Run statements in one transaction, or in the one that is open; return each
        one's rows."""
        with transaction.atomic(using=self.alias):
            return [self.fetch(statement, params) for statement, params in statements]


class BoundedConnection(psycopg.Connection[tuple[Any, ...]]):
    """A psycopg connection none of whose calls can wait for ever.

    TCP's own timers do not end a call through a proxy that keeps the connection open
    and stays silent, so the waiting itself has a deadline.
    """

    bound: float = 15.0  # seconds

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._prepared_here: dict[HotStatement, Prepared] = {}

    def fetch_hot(self, statement: HotStatement, params: Params) -> list[Any]:
        """Run one in a transaction of its own, and return its rows."""
        prepared = self._prepared_here.get(statement)
        if prepared is not None:
            with suppress(psycopg.errors.InvalidSqlStatementName):
                return prepared.rows(self, params)
            # After a rollback psycopg has the server forget all that is prepared.
        prepared = self._prepared_here[statement] = Prepared(self, statement)
        return prepared.rows(self, params)

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Wait for the server, but not for longer than ``bound`` seconds."""
        return super().wait(self._watched(gen), *args, **kwargs)

    def _watched(self, gen: Any) -> Generator[Any, Any, Any]:
        deadline = time.monotonic() + self.bound
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self.close()  # or the way out of a transaction waits anew
                    raise psycopg.OperationalError(
                        f"no answer from the database within {self.bound:g} s"
                    )
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


class OwnConnection:
    """A connection of the machinery's own; made at first use, and again after a
    loss."""

    def __init__(
        self, purpose: str, *, plans: Params = EMPTY, pooled: bool = False
    ) -> None:
        self.purpose = purpose  # application_name in pg_stat_activity
        self.plans = plans  # settings of the planner
        self.pooled = pooled  # behind a transaction pooler: no state in the session
        self._connection: BoundedConnection | None = None
        self._failures = 0
        self._since = 0.0
        self._logged_at = 0.0

    def fetch(self, statement: str, params: Params = EMPTY) -> list[tuple[Any, ...]]:
        """Run one statement, in a transaction of its own, and return its rows.

        Raises StoreUnavailable for whatever time may heal.
        """
        with self._sorted() as connection:
            if isinstance(statement, HotStatement) and not self.pooled:
                return connection.fetch_hot(statement, params)
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
            with connection.pipeline(), connection.transaction():
                if self.pooled:
                    self._pin(connection)
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
                self._pin(connection)
            yield OpenTransaction(connection)

    @contextmanager
    def raw(self) -> Iterator[BoundedConnection]:
        """The psycopg connection itself; troubles are sorted as in ``fetch``."""
        with self._sorted() as connection:
            yield connection

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
            self._pin(connection)
            return cursor.execute(statement, params)

    @contextmanager
    def _sorted(self) -> Iterator[BoundedConnection]:
        """Give out the connection; turn passing troubles into StoreUnavailable."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            yield self._connection
        except psycopg.Error as error:
            code = error.sqlstate or ""
            if not is_passing(error):
                raise
            if code not in _ROLLED_BACK:
                self.close()
            raise self._unavailable(error, code) from error
        if self._failures:
            self._recovered()

    def _connect(self) -> BoundedConnection:
        parameters = {
            **connection_parameters(),
            "prepare_threshold": None if self.pooled else 0,
            "application_name": f"jobqueue {self.purpose}",
        }
        connection = BoundedConnection.connect(autocommit=True, **parameters)
        connection.bound = conf.statement_timeout + 5
        if not self.pooled:
            self._configure(connection)
        return connection

    def _configure(self, connection: BoundedConnection) -> None:
        """What this session needs, in one round trip."""
        timeout = int(conf.statement_timeout * 1000)
        values: dict[str, str] = {
            "statement_timeout": str(timeout),
            "lock_timeout": str(min(timeout, 2_000)),
            "idle_in_transaction_session_timeout": str(timeout),
            "default_transaction_isolation": "read committed",
            "tcp_user_timeout": "5000",
            "tcp_keepalives_idle": "5",
            "tcp_keepalives_interval": "2",
            "tcp_keepalives_count": "3",
            **self.plans,
        }
        statements = [
            sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in values.items()
        ]
        role = connections.settings[conf.database].get("OPTIONS", {}).get("assume_role")
        if role:
            statements.append(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        connection.execute(sql.SQL("; ").join(statements), prepare=False)

    def _pin(self, connection: BoundedConnection) -> None:
        """The same for one transaction, where the session is not ours."""
        timeout = str(int(conf.statement_timeout * 1000))
        values = {"statement_timeout": timeout, "lock_timeout": "2000"}
        values |= {k: v for k, v in self.plans.items() if k != "plan_cache_mode"}
        calls = [
            sql.SQL("set_config({}, {}, true)").format(name, value)
            for name, value in values.items()
        ]
        connection.execute(sql.SQL("SELECT {}").format(sql.SQL(", ").join(calls)))

    def _unavailable(self, error: psycopg.Error, code: str) -> StoreUnavailable:
        self._failures += 1
        now = time.monotonic()
        if self._failures == 1:
            self._since = now
        longest = min(LONGEST_REST, SHORTEST_REST * 2 ** min(self._failures, 10))
        text = " ".join(str(error).split())[:300]
        if code in NEEDS_MIGRATE:
            text += " (is a migration missing? run manage.py migrate)"
        if self._failures == 1 or now - self._logged_at > 60:
            self._logged_at = now
            logger.warning("%s: database trouble, trying again: %s", self.purpose, text)
        return StoreUnavailable(
            text,
            retry_in=longest * random.uniform(0.5, 1),
            is_outage=code not in _ROLLED_BACK,
        )

    def _recovered(self) -> None:
        seconds = time.monotonic() - self._since
        logger.info(
            "%s: the database can be used again after %.1f s (%d tries)",
            self.purpose,
            seconds,
            self._failures,
        )
        self._failures = 0


def is_passing(error: psycopg.Error) -> bool:
    """Whether this trouble may be gone at the next try."""
    code = error.sqlstate
    if code is None:  # the client's own: connection lost, refused, closed, timed out
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if error.diag.source_function == "RevalidateCachedQuery":
        return True  # a migration changed a column: prepared statements must be new
    return code.startswith(_PASSING_CLASSES) or code in _PASSING_CODES


def connection_parameters() -> dict[str, Any]:
    """Django's own parameters for the database of the jobs, for a plain connection.

    A lost network is noticed in about five seconds instead of a minute or more, unless
    the project's OPTIONS say otherwise.
    """
    wrapper = connections.create_connection(conf.database)
    found: dict[str, Any] = wrapper.get_connection_params()
    for option in _DRIVER_OPTIONS:
        found.pop(option, None)
    return {
        "connect_timeout": 5,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 5_000,
        **found,
    }
