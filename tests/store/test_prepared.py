"""Statements that are prepared once for a connection and sent with nothing but their
parameters."""

from __future__ import annotations

import pytest
from psycopg.errors import DivisionByZero

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.prepared import PreparedStatement

GIVEN = PreparedStatement("""
SELECT %(number)s::integer + 1, %(text)s::text, %(none)s::text, %(number)s::integer,
       %(ids)s::uuid[], '100 %%'
""")
QUOTIENT = PreparedStatement("SELECT 12 / %(by)s::integer")
PARAMS = {"number": 7, "text": "é'\\\"", "none": None, "ids": "{}"}


def test_a_prepared_statement_has_the_same_rows(own: OwnConnection) -> None:
    rows = [(8, "é'\\\"", None, 7, [], "100 %")]
    assert own.fetch(GIVEN, PARAMS) == rows
    assert own.fetch(GIVEN, PARAMS) == rows
    assert DjangoDatabase().fetch(GIVEN, PARAMS) == rows


def test_a_hot_statement_may_have_no_rows(own: OwnConnection) -> None:
    some = PreparedStatement("SELECT n FROM generate_series(1, %(last)s::integer) AS n")
    assert own.fetch(some, {"last": 0}) == []
    assert own.fetch(some, {"last": 2}) == [(1,), (2,)]


def test_a_hot_statement_is_prepared_again_after_a_rollback(own: OwnConnection) -> None:
    assert own.fetch(QUOTIENT, {"by": 3}) == [(4,)]
    with pytest.raises(DivisionByZero):
        own.fetch_all([("SELECT 1 / 0", {})])
    own.run("SELECT 1")  # psycopg has all forgotten before this
    assert own.fetch(QUOTIENT, {"by": 4}) == [(3,)]


def test_a_prepared_statement_may_fail_once(own: OwnConnection) -> None:
    with pytest.raises(DivisionByZero):
        own.fetch(QUOTIENT, {"by": 0})
    assert own.fetch(QUOTIENT, {"by": 2}) == [(6,)]


def test_a_hot_statement_is_unavailable_while_its_session_is_gone(
    own: OwnConnection, other: OwnConnection
) -> None:
    ((pid,),) = own.fetch("SELECT pg_backend_pid()")
    assert own.fetch(QUOTIENT, {"by": 3}) == [(4,)]
    other.run("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})
    with pytest.raises(StoreUnavailable):
        own.fetch(QUOTIENT, {"by": 3})
    assert own.fetch(QUOTIENT, {"by": 3}) == [(4,)]


def test_nobody_waits_for_ever_for_the_answer_to_a_hot_statement(
    own: OwnConnection, other: OwnConnection
) -> None:
    slow = PreparedStatement(
        "SELECT pg_backend_pid() FROM pg_sleep(%(seconds)s::integer)"
    )
    ((pid,),) = own.fetch(slow, {"seconds": 0})
    with own.raw() as connection:
        connection.bound = 0.05
    with pytest.raises(StoreUnavailable, match="no answer"):
        own.fetch(slow, {"seconds": 60})
    other.run("SELECT pg_terminate_backend(%(pid)s, 5000)", {"pid": pid})


def test_behind_a_pooler_nothing_is_prepared(transactional_db: None) -> None:
    pooled = OwnConnection("tests", pooled=True)
    assert pooled.fetch(QUOTIENT, {"by": 6}) == [(2,)]
    assert pooled.fetch("SELECT count(*) FROM pg_prepared_statements") == [(0,)]
    pooled.close()
