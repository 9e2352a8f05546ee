"""The machinery's own connection: troubles are sorted, and none of them lasts."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, connections, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext
from psycopg import errors

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import (
    EMPTY,
    LONGEST_PAUSE,
    DjangoDatabase,
    OwnConnection,
)
from django_jobqueue.store.errors import is_passing
from django_jobqueue.store.session import PINNED, connection_parameters
from tests.store.meanwhile import Background, open_transaction, until_waiting
from tests.store.rows import ADD, make

PID = "SELECT pg_backend_pid()"
UPDATE = "UPDATE jobqueue_queuedjob SET attempts = 7"


def pid(db: OwnConnection) -> int:
    """The process of the server that serves this connection."""
    number: int = db.fetch(PID)[0][0]
    return number


PASSING = [
    errors.ConnectionFailure,  # 08006
    errors.SqlclientUnableToEstablishSqlconnection,  # 08001
    errors.TooManyConnections,  # 53300
    errors.DiskFull,  # 53100
    errors.QueryCanceled,  # 57014
    errors.AdminShutdown,  # 57P01
    errors.CrashShutdown,  # 57P02
    errors.CannotConnectNow,  # 57P03
    errors.IoError,  # 58030
    errors.ReadOnlySqlTransaction,  # 25006
    errors.IdleInTransactionSessionTimeout,  # 25P03
    errors.TransactionTimeout,  # 25P04
    errors.SerializationFailure,  # 40001
    errors.DeadlockDetected,  # 40P01
    errors.LockNotAvailable,  # 55P03
    errors.UndefinedTable,  # 42P01
    errors.UndefinedColumn,  # 42703
    errors.UndefinedFunction,  # 42883
    psycopg.OperationalError,  # the client's own
    psycopg.InterfaceError,
]
LASTING = [
    errors.UniqueViolation,  # 23505
    errors.ForeignKeyViolation,  # 23503
    errors.CheckViolation,  # 23514
    errors.UntranslatableCharacter,  # 22P05
    errors.SyntaxError,  # 42601
    errors.InsufficientPrivilege,  # 42501
    psycopg.ProgrammingError,
    psycopg.DataError,
]


def test_an_error_is_passing_if_time_may_heal_it() -> None:
    every = [*PASSING, *LASTING]
    assert [one for one in every if is_passing(one("trouble"))] == PASSING


def test_a_terminated_connection_is_unavailable_once_and_then_made_again(
    own: OwnConnection, other: OwnConnection, configure: Callable[..., None]
) -> None:
    before = pid(own)
    other.fetch("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": before})
    with pytest.raises(StoreUnavailable) as caught:
        pid(own)
    assert 0 < caught.value.retry_in <= LONGEST_PAUSE
    assert pid(own) != before
    configure(HOST="/nowhere")
    with pytest.raises(StoreUnavailable, match="/nowhere"):
        OwnConnection("lost").fetch("SELECT 1")


def test_a_closed_connection_is_made_again_at_the_next_call(own: OwnConnection) -> None:
    before = pid(own)
    own.close()
    own.close()
    assert pid(own) != before


def test_a_statement_too_long_leaves_the_connection(other: OwnConnection) -> None:
    with override_settings(JOBQUEUE={"STATEMENT_TIMEOUT": 0.1}):
        own = OwnConnection("hasty")
        before = pid(own)
    with pytest.raises(StoreUnavailable, match="statement timeout"):
        own.fetch("SELECT pg_sleep(60)")
    assert pid(own) == before
    own.close()


def test_a_lock_is_not_waited_for_forever_and_leaves_no_transaction_behind(
    own: OwnConnection, other: OwnConnection
) -> None:
    make()
    assert own.fetch("SHOW lock_timeout") == [("2s",)]
    with own.raw() as connection:
        connection.execute("SET lock_timeout = '50ms'")
    before = pid(own)
    with open_transaction(other) as transaction:
        transaction.run(UPDATE)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            own.run(UPDATE)
        with pytest.raises(StoreUnavailable, match="lock timeout"):
            own.fetch_all([("SELECT 1", {}), (f"{UPDATE} RETURNING id", {})])
    assert own.fetch_all([(PID, {}), ("SELECT 2", {})]) == [[(before,)], [(2,)]]
    own.run(UPDATE)


def test_a_deadlock_is_unavailable_and_the_connection_stays(
    own: OwnConnection, other: OwnConnection, background: Background
) -> None:
    first, second = sorted([make(), make()])
    before = pid(own)

    def cross() -> None:
        with open_transaction(other) as transaction:
            transaction.run("SET LOCAL lock_timeout = 0")
            transaction.run("SET LOCAL deadlock_timeout = '1min'")
            transaction.lock(second)
            transaction.lock(first)

    def fall_in() -> None:
        with open_transaction(own) as transaction:
            transaction.run("SET LOCAL lock_timeout = 0")
            transaction.run("SET LOCAL deadlock_timeout = '10ms'")
            transaction.lock(first)
            crossing.append(background(cross))
            until_waiting()
            transaction.lock(second)

    crossing: list[Any] = []
    with pytest.raises(StoreUnavailable, match="deadlock"):
        fall_in()

    crossing[0].result(30)
    assert pid(own) == before


def test_a_read_only_server_is_left_for_another_one(own: OwnConnection) -> None:
    before = pid(own)
    with own.raw() as connection:
        connection.execute("SET default_transaction_read_only = on")
    with pytest.raises(StoreUnavailable, match="read-only"):
        own.run(UPDATE)
    own.run(UPDATE)
    assert pid(own) != before


def test_a_database_that_is_not_migrated_says_what_to_do(own: OwnConnection) -> None:
    before = pid(own)
    for statement in (
        "SELECT * FROM jobqueue_nothing",
        "SELECT nothing FROM jobqueue_queuedjob",
        "SELECT jobqueue_nothing()",
    ):
        with pytest.raises(StoreUnavailable, match=re.escape("run manage.py migrate")):
            own.fetch(statement)
    assert pid(own) == before


def test_errors_of_ours_are_as_they_are_others_in_a_line(own: OwnConnection) -> None:
    before = pid(own)
    row = "INSERT INTO jobqueue_queuedjob (job_type, priority) VALUES (%(t)s, 999)"
    with pytest.raises(errors.CheckViolation):
        own.run(row, {"t": ADD})
    assert pid(own) == before
    with pytest.raises(StoreUnavailable) as caught:
        own.fetch(f'SELECT *\n\n FROM "{"n" * 63}", pg_class -- {"x" * 5_000}')
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_statements_together_are_atomic(
    own: OwnConnection, other: OwnConnection
) -> None:
    make()
    with pytest.raises(errors.DivisionByZero):
        own.fetch_all([(f"{UPDATE} RETURNING id", {}), ("SELECT 1 / 0", {})])
    assert other.fetch("SELECT attempts FROM jobqueue_queuedjob") == [(0,)]
    now = "SELECT now(), clock_timestamp() > now()"
    first, second = own.fetch_all([(now, {}), (now, {})])
    assert first == second == [(first[0][0], True)]


def test_a_column_that_a_migration_widened_is_seen_at_the_second_call(
    own: OwnConnection, other: OwnConnection
) -> None:
    own.run("CREATE TABLE widened (name varchar(10))")
    try:
        own.fetch("SELECT name FROM widened")
        other.run("ALTER TABLE widened ALTER name TYPE varchar(20)")
        with pytest.raises(StoreUnavailable):
            own.fetch("SELECT name FROM widened")
        assert own.fetch("SELECT name FROM widened") == []
    finally:
        other.run("DROP TABLE widened")


def test_plans_are_pinned_where_it_was_asked_for(transactional_db: None) -> None:
    settings = ("plan_cache_mode", "enable_seqscan", "enable_sort", "jit")
    shown = []
    for plans in (PINNED, EMPTY):
        with closing(OwnConnection("tests", plans=plans)) as db:
            shown.append([db.fetch(f"SHOW {name}")[0][0] for name in settings])
    pinned, free = shown
    assert pinned == ["force_generic_plan", "off", "off", "off"]
    assert free[:3] == ["auto", "on", "on"]


def test_a_connection_has_bounds_and_a_name(own: OwnConnection) -> None:
    settings = {
        "application_name": "jobqueue tests",
        "statement_timeout": "10s",
        "idle_in_transaction_session_timeout": "10s",
        "idle_session_timeout": "0",
        "transaction_isolation": "read committed",
    }
    assert {name: own.fetch(f"SHOW {name}")[0][0] for name in settings} == settings


def test_the_projects_options_win_over_ours(configure: Callable[..., None]) -> None:
    options = {"connect_timeout": 2, "tcp_user_timeout": 9, "sslmode": "disable"}
    configure(OPTIONS={**options, "application_name": "shop"})
    found = connection_parameters()
    assert {name: found[name] for name in options} == options
    assert found["keepalives_idle"] == 5
    with closing(OwnConnection("tests")) as db:
        assert db.fetch("SHOW application_name") == [("jobqueue tests",)]


def test_a_role_that_the_project_assumes_is_assumed(
    own: OwnConnection, configure: Callable[..., None]
) -> None:
    own.run("CREATE ROLE jobqueue_tests")
    try:
        configure(OPTIONS={"assume_role": "jobqueue_tests"})
        for pooled in (False, True):
            asked = [("SELECT current_user", {})]
            with closing(OwnConnection("tests", pooled=pooled)) as db:
                found = [db.fetch("SELECT current_user"), *db.fetch_all(asked)]
                with db.transaction() as inside:
                    found.append(inside.fetch("SELECT current_user"))
            assert found == [[("jobqueue_tests",)]] * 3, f"{pooled=}"
    finally:
        own.run("DROP ROLE jobqueue_tests")


def test_an_outage_is_logged_when_it_begins_and_when_it_ends(
    own: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "django_jobqueue.database")
    rests = []
    for _ in range(50):
        with pytest.raises(StoreUnavailable) as caught:
            own.fetch("SELECT * FROM jobqueue_nothing")
        rests.append(caught.value.retry_in)
    own.fetch("SELECT 1")
    own.fetch("SELECT 1")
    levels = [record.levelname for record in caplog.records]
    messages = [record.getMessage() for record in caplog.records]
    assert levels == ["WARNING", "INFO"]
    assert messages[0].startswith("tests: database error, trying again: relation")
    assert "can be used again" in messages[1]
    assert "(50 tries)" in messages[1]
    assert max(rests) <= LONGEST_PAUSE
    assert max(rests[:2]) < min(rests[10:])


def test_a_statement_on_the_callers_connection_is_in_the_callers_transaction(
    transactional_db: None, own: OwnConnection
) -> None:
    make()
    db = DjangoDatabase()
    assert db.alias == conf.database
    assert not connections["default"].in_atomic_block
    db.run(UPDATE)
    assert own.fetch("SELECT attempts FROM jobqueue_queuedjob") == [(7,)]


def test_a_kept_cursor_is_made_with_its_connection(transactional_db: None) -> None:
    db = DjangoDatabase()
    ask = "SELECT pg_backend_pid(), %(n)s"
    first = db.fetch_row(ask, {"n": 1})
    assert db.fetch_row(ask, {"n": 2}) == (first[0], 2)
    connection.close()
    again = db.fetch_row(ask, {"n": 3})
    assert (again[0] != first[0], again[1]) == (True, 3)


def test_who_watches_cursors_sees_a_kept_one_too(transactional_db: None) -> None:
    db, seen = DjangoDatabase(), []

    def watch(execute: Any, sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    db.fetch_row("SELECT %(n)s", {"n": 1})
    with connection.execute_wrapper(watch):
        db.fetch_row("SELECT %(n)s", {"n": 2})
    with CaptureQueriesContext(connection) as captured:
        db.fetch_row("SELECT %(n)s", {"n": 3})
        db.fetch_row("SELECT %(n)s", {"n": 4})
    assert seen == ["SELECT %(n)s"]
    assert len(captured) == 2
    db.fetch_row("SELECT %(n)s", {"n": 5})
    assert len(captured) == 2


def test_a_kept_cursor_is_in_the_transaction(transactional_db: None) -> None:
    db = DjangoDatabase()
    with transaction.atomic():
        with pytest.raises(DatabaseError, match="division by zero"):
            db.fetch_row("SELECT 1 / %(n)s", {"n": 0})
        with pytest.raises(DatabaseError, match="transaction is aborted"):
            db.fetch_row("SELECT %(n)s", {"n": 1})
        transaction.set_rollback(True)
    assert db.fetch_row("SELECT %(n)s", {"n": 2}) == (2,)
