"""One outage is two records in a process, whoever sees it."""

from __future__ import annotations

import logging
import time

import pytest

from django_jobqueue.domain.log_events import Event
from django_jobqueue.store import outage_log
from django_jobqueue.store.outage_log import OutageLog


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> OutageLog:
    caplog.set_level(logging.INFO, "django_jobqueue.database")
    return OutageLog(Event.DATABASE_LOST)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [vars(record)["event"] for record in caplog.records]


def test_connections_that_see_the_same_outage_log_it_once(
    log: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):  # outages
        connected = time.monotonic()
        for purpose in ("dispatcher", "completer", "reporter"):
            for _ in range(20):
                log.lost(purpose, "the server is gone", connected)
        for purpose in ("completer", "dispatcher", "reporter"):
            log.back(purpose, 20)
    log.lost("dispatcher", "no route to host", 0.0)  # it was never made
    assert said(caplog) == ["database.lost", "database.back"] * 2 + ["database.lost"]


def test_who_slept_through_an_outage_says_nothing_of_it(
    log: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    connected = time.monotonic()
    log.lost("dispatcher", "the server is gone", connected)
    log.back("dispatcher", 1)
    log.lost("listener", "the connection is closed", connected)
    log.back("listener", 1)
    assert said(caplog) == ["database.lost", "database.back"]


def test_a_long_outage_is_logged_again(
    log: OutageLog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outage_log, "REPEAT_EVERY", 0.0)
    for _ in range(3):
        log.lost("dispatcher", "no route to host", 0.0)
    assert said(caplog) == ["database.lost"] * 3
