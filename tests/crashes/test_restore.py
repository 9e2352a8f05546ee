"""A dump that is restored beside its original, by an earlier server: hosts sleep."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connections

from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import DjangoDatabase
from testproject.postgres import Server, database_settings
from tests import settings
from tests.sample import jobs
from tests.support.commands import start_command
from tests.support.doomed_server import VERSION
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.slow("starts a server of another version"),
    pytest.mark.servers,
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(settings.SERVER is None, reason="needs a server of its own"),
]

EARLIER = 16 if VERSION != 16 else 18  # of the other wheel
BRISK = {"store.database_identity.CHECK_EVERY": 0.05}
UNKNOWN = b"SET transaction_timeout = 0;"  # before PostgreSQL 17


@pytest.fixture
def earlier() -> Iterator[Server]:
    """A server of an earlier version."""
    with tempfile.TemporaryDirectory(prefix="jq-") as folder:
        Path(folder).chmod(0o755)  # the server may run as another user
        server = Server(Path(folder) / "pg", EARLIER, {"fsync": "off"}).start()
        yield server
        server.stop("immediate")


def restore(server: Server) -> None:
    """Restore a dump of the test's database there."""
    assert settings.SERVER is not None
    name = connections["default"].settings_dict["NAME"]
    dump = subprocess.run(
        [settings.SERVER.program("pg_dump"), settings.SERVER.url(str(name))],
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(
        [settings.SERVER.program("psql"), "-qv", "ON_ERROR_STOP=1", server.url()],
        input=dump.replace(UNKNOWN, b""),
        stdout=subprocess.DEVNULL,
        check=True,
    )


def test_a_restored_dump_sleeps_until_it_is_woken(
    earlier: Server, runworkers: Callable[..., RunWorkers], tmp_path: Path
) -> None:
    def query(statement: str) -> list[tuple[Any, ...]]:
        parts = database_settings(earlier.url())
        with psycopg.connect(
            host=parts["HOST"], user=parts["USER"], dbname=parts["NAME"]
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def manage(*arguments: str) -> None:
        output = tmp_path / "output"
        process = start_command(*arguments, output=output, DATABASE_URL=earlier.url())
        assert process.wait(60) == 0, output.read_text()

    database_identity.check_in(DjangoDatabase())  # a host works in the original
    jobs.add.enqueue(1)
    restore(earlier)
    if VERSION > EARLIER:  # the original's function calls one that this server lacks
        with pytest.raises(psycopg.errors.UndefinedFunction):
            query("SELECT jobqueue_uuidv7()")
    run = runworkers("--threads", "1", DATABASE_URL=earlier.url(), constants=BRISK)
    eventually(lambda: "This database is a copy: " in run.output, what=run.output)
    manage("migrate", "jobqueue", "--skip-checks")
    query(
        "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES"
        " ('tests.sample.add', '{\"a\": 2}')"
    )
    assert query("SELECT attempts FROM jobqueue_queuedjob") == [(0,), (0,)]
    assert query("SELECT 1 FROM jobqueue_worker") == []
    manage("jobqueue", "wake")
    eventually(
        lambda: (
            query("SELECT status FROM jobqueue_archivedjob")
            == [("succeeded",), ("succeeded",)]
        ),
        what=lambda: run.output,
    )
