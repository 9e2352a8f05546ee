"""Connections that are lost without a word, and connections through a pooler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest
from django.db import connections

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.outage_log import outages
from django_jobqueue.store.session import PINNED, BoundedConnection
from tests.store.proxy import Proxy

SHOWN = (
    "statement_timeout",
    "lock_timeout",
    "enable_seqscan",
    "enable_sort",
    "enable_bitmapscan",
    "jit",
    "plan_cache_mode",
    "idle_in_transaction_session_timeout",
)


@pytest.fixture
def proxy(configure: Callable[..., None]) -> Iterator[Proxy]:
    """A proxy that every new connection to the database goes through."""
    settings = connections.settings["default"]
    with Proxy(str(settings["HOST"]), str(settings["PORT"])) as made:
        configure(HOST="127.0.0.1", PORT=str(made.port))
        yield made


@pytest.fixture
def through(proxy: Proxy) -> Iterator[OwnConnection]:
    """A connection through the proxy that waits for a fifth of a second at most."""
    with closing(OwnConnection("tests")) as db:
        with db.raw() as connection:
            connection.bound = 0.2
        yield db


def test_a_call_through_a_proxy_that_fell_silent_is_given_up(
    proxy: Proxy, through: OwnConnection
) -> None:
    assert through.fetch("SELECT 1") == [(1,)]
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match="no answer from the database"):
        through.fetch("SELECT 2")
    proxy.speak_again()
    assert through.fetch("SELECT 3") == [(3,)]


def test_a_lost_answer_to_a_transaction_is_waited_for_only_once(
    proxy: Proxy, through: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    outages.back("those of other tests", 1)
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable):
        through.fetch_all([("SELECT 1", {}), ("SELECT 2", {})])
    proxy.speak_again()
    assert through.fetch_all([("SELECT 1", {})]) == [[(1,)]]
    waits = [r for r in caplog.records if "within 0.2 s" in r.getMessage()]
    assert [r.name for r in waits] == ["django_jobqueue.database"]


def test_a_proxy_that_falls_silent_inside_a_transaction_is_given_up(
    proxy: Proxy, through: OwnConnection
) -> None:
    def use() -> None:
        with through.raw() as connection, connection.transaction():
            connection.execute("SELECT 1")
            proxy.fall_silent()
            connection.execute("SELECT 2")

    with pytest.raises(StoreUnavailable):
        use()
    proxy.speak_again()
    assert through.fetch("SELECT 3") == [(3,)]


def test_a_server_that_accepts_and_says_nothing_is_given_up(
    proxy: Proxy, configure: Callable[..., None]
) -> None:
    configure(OPTIONS={"connect_timeout": 2})  # the least that libpq has
    proxy.fall_silent()
    with pytest.raises(StoreUnavailable, match="timeout"):
        OwnConnection("tests").fetch("SELECT 1")


def test_an_answer_that_comes_late_is_not_waited_for(own: OwnConnection) -> None:
    with own.raw() as connection:
        connection.bound = 0.05
    with pytest.raises(StoreUnavailable, match="within 0.05 s"):
        own.fetch("SELECT pg_sleep(0.5)")
    assert own.fetch("SELECT 1") == [(1,)]


def test_an_answer_that_comes_in_parts_is_waited_for(own: OwnConnection) -> None:
    with own.raw() as connection:
        assert isinstance(connection, BoundedConnection)
        assert connection.bound == 15.0
    rows = own.fetch("SELECT n, repeat('x', 1000) FROM generate_series(1, 5000) AS n")
    assert len(rows) == 5_000


def show(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, object]:
    """What the session's settings are, outside of any transaction."""
    rows = [connection.execute(f"SHOW {name}", prepare=False) for name in SHOWN]
    return {name: row.fetchall()[0][0] for name, row in zip(SHOWN, rows, strict=True)}


def test_a_pooled_connection_leaves_nothing_behind(transactional_db: None) -> None:
    setting = "SELECT current_setting(%(name)s)"
    wanted = {
        "statement_timeout": "10s",
        "lock_timeout": "2s",
        "enable_sort": "off",
        "jit": "off",
    }
    with closing(OwnConnection("tests", plans=PINNED, pooled=True)) as pooled:
        with pooled.raw() as connection:
            before = show(connection)
            connection.commit()
        assert wanted == {
            name: pooled.fetch(setting, {"name": name})[0][0] for name in wanted
        }
        both = pooled.fetch_all([(setting, {"name": "enable_sort"}), ("SELECT 1", {})])
        assert both == [[("off",)], [(1,)]]
        pooled.run("SELECT 1")
        with pytest.raises(psycopg.errors.DivisionByZero):
            pooled.fetch("SELECT 1 / 0")
        with pooled.raw() as connection:
            assert show(connection) == before
            assert connection.info.transaction_status.name == "IDLE"
            prepared = "SELECT name FROM pg_prepared_statements"
            assert connection.execute(prepared, prepare=False).fetchall() == []


def test_an_unpooled_connection_prepares_what_it_sends(own: OwnConnection) -> None:
    own.fetch("SELECT 1 + %(n)s::integer", {"n": 1})
    rows = own.fetch("SELECT statement FROM pg_prepared_statements")
    assert ("SELECT 1 + $1::integer",) in rows
