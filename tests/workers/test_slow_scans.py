"""A slow full scan is reported with what was seen, and no guess."""

from __future__ import annotations

import re

import pytest

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.workers.claiming.slow_scans import WARN_EVERY, SlowScans
from tests.store.meanwhile import open_transaction
from tests.store.rows import make
from tests.workers.stopped_clock import StoppedClock

pytestmark = pytest.mark.django_db(transaction=True)
SCAN = r"Full scan of the queue took 2\.1 s; next in 42 s\. "
LOAD = r"\. The load of this machine is [0-9.]+ on [0-9]+ CPUs"


def test_it_names_the_oldest_transaction_and_the_load(
    own: OwnConnection,
    other: OwnConnection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = StoppedClock()
    monkeypatch.setattr("django_jobqueue.workers.claiming.slow_scans.time", clock)
    slow_scans = SlowScans(own)
    id = make()
    with open_transaction(other) as transaction:
        transaction.lock(id)
        ((pid,),) = transaction.fetch("SELECT pg_backend_pid()")
        slow_scans.took(2.1, pause=42)
        slow_scans.took(2.1, pause=42)
    (record,) = caplog.records
    seen = rf"began [0-9.]+ s ago \({pid} .*, idle in transaction\)"
    oldest = "The oldest open transaction of this database " + seen
    assert re.fullmatch(SCAN + oldest + LOAD, record.getMessage())

    caplog.clear()
    clock.now += WARN_EVERY + 1
    slow_scans.took(2.1, pause=42)
    nobody = "No other transaction is open in this database, as far as can be seen"
    assert re.fullmatch(SCAN + nobody + LOAD, caplog.records[0].getMessage())
