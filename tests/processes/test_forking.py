"""What is let go before a fork."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from django.core.cache import caches
from django.db import connections
from django.test import override_settings

from django_jobqueue.processes import forking
from django_jobqueue.workers.executors.sync_calls_thread import GuardedThreads

pytestmark = pytest.mark.django_db(transaction=True)
POOL = {"min_size": 1, "max_size": 2}


@pytest.fixture
def _pool() -> Iterator[None]:
    wrapper = connections["default"]
    wrapper.close()
    wrapper.settings_dict["OPTIONS"]["pool"] = POOL
    yield
    wrapper.close()
    wrapper.close_pool()
    del wrapper.settings_dict["OPTIONS"]["pool"]


@pytest.mark.usefixtures("_pool")
def test_connections_and_pools_are_closed_and_opened_anew() -> None:
    wrapper = connections["default"]
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
    before = wrapper.pool
    forking.let_go()
    assert wrapper.connection is None
    assert before.closed
    assert wrapper._connection_pools == {}  # private: Django's
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert wrapper.pool is not before


@pytest.mark.usefixtures("_pool")
def test_what_cannot_be_closed_keeps_nothing_else_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a cache of the tests")

    wrapper = connections["default"]
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
    with monkeypatch.context() as patched:
        patched.setattr(type(wrapper), "close", fail)
        patched.setattr(caches, "close_all", fail)
        forking.let_go()
    assert wrapper._connection_pools == {}  # private: Django's
    assert caplog.text.count("A connection could not be closed for a fork") == 2


def test_records_that_a_log_handler_keeps_back_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Kept(logging.Handler):
        flushed = 0

        def flush(self) -> None:
            Kept.flushed += 1
            raise OSError("closed")

    logger, handler = logging.getLogger("tests.forking"), Kept()
    logger.addHandler(handler)
    print("before", end="")
    forking.let_go()
    logger.removeHandler(handler)
    assert Kept.flushed == 1
    assert capsys.readouterr().out == "before"


def test_a_process_that_was_not_forked_goes_on() -> None:
    with GuardedThreads("tests", 1) as threads:
        assert threads.submit(int, "7").result(20) == 7


@override_settings(CACHES={"default": {"BACKEND": "tests.sample.inherited.Client"}})
def test_clients_of_caches_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    caches["default"].get("a")
    monkeypatch.setattr(
        type(caches["default"]), "close", lambda self, **kwargs: closed.append("yes")
    )
    forking.let_go()
    assert closed == ["yes"]
