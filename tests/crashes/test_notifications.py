"""The server's queue of notifications is full: no attempt fails for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from testproject.postgres import database_settings
from tests.support.doomed_server import Doomed, doomed_server
from tests.support.run_workers import BRISK
from tests.support.waiting import eventually

SLOTS = ("--threads", "1", "--async-slots", "0", "--poll-interval", "1")
SOON = {
    **BRISK,
    "store.connection.LONGEST_PAUSE": 0.5,
    "host.maintenance.host_maintenance.ASK_EVERY": 0.5,
}
VERSION = int(os.environ.get("JOBQUEUE_POSTGRES", "18"))

pytestmark = [
    pytest.mark.processes,
    pytest.mark.servers,
    pytest.mark.skipif(
        VERSION < 17, reason="needs PostgreSQL 17: before, the queue has 8 GB"
    ),
]


@pytest.fixture
def small() -> Iterator[Doomed]:
    with doomed_server(max_notify_queue_pages="64") as made:
        yield made


def fill(doomed: Doomed) -> None:
    """Notify until there is no more room."""
    for n in range(1_000):
        try:
            doomed.query("SELECT pg_notify('other', %s)", str(n).zfill(7_990))
        except psycopg.errors.ProgramLimitExceeded:
            return
    raise AssertionError("there is always more room")


def test_an_attempt_that_is_to_be_made_again_waits_for_room(
    small: Doomed, tmp_path: Path
) -> None:
    worker = small.runworkers(*SLOTS, constants=SOON)
    small.query(
        "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s::jsonb)",
        "tests.sample.step_by_step",
        json.dumps({"folder": str(tmp_path), "total": 1}),
    )
    eventually(
        lambda: small.query(
            "SELECT 1 FROM jobqueue_queuedjob WHERE status = 'running'"
        ),
        what=worker.output,
    )
    small.enqueue("fail")
    idle = small.runworkers("--threads", "0", "--async-slots", "1")
    eventually(lambda: small.query("SELECT 1 FROM jobqueue_worker WHERE listening"))
    parts = database_settings(small.url)
    with psycopg.connect(
        host=parts["HOST"], user=parts["USER"], dbname=parts["NAME"]
    ) as deaf:
        deaf.execute("LISTEN other")
        deaf.commit()
        deaf.execute("SELECT 1")  # in a transaction it reads no notifications
        fill(small)
        (tmp_path / "1").touch()
        eventually(lambda: small.statuses() == ["succeeded"], what=worker.output)
        eventually(lambda: "too many notifications" in worker.output)
        assert small.query("SELECT status FROM jobqueue_queuedjob") == [("running",)]
    eventually(small.is_empty, what=worker.output)
    ended = small.query(
        "SELECT status, attempts, crashes FROM jobqueue_archivedjob ORDER BY status"
    )
    assert ended == [("failed", 3, 0), ("succeeded", 1, 0)]
    assert (worker.stop(), idle.stop()) == (0, 0)
