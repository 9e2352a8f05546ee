"""A server of one's own, to be stopped, killed and cut off."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest

from testproject.postgres import Server, database_settings
from tests.conftest import ROOT, RunWorkers

VERSION = int(os.environ.get("JOBQUEUE_POSTGRES", "18"))


def environment_of(server: Server) -> dict[str, str]:
    """For processes that use its database."""
    return {
        **os.environ,
        "DATABASE_URL": server.url("postgres"),
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(ROOT),
    }


@cache
def migrated_server() -> Path:
    """The folder of a stopped server with a migrated database, to be copied: to make
    one takes seconds."""
    made = tempfile.mkdtemp(prefix="jq-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    os.chmod(made, 0o755)  # the server may run as another user
    server = Server(Path(made) / "pg", VERSION, {"fsync": "off"}).start()
    migrate = [sys.executable, "-m", "django", "migrate", "-v", "0"]
    try:
        subprocess.run(migrate, env=environment_of(server), check=True)
    finally:
        server.stop()
    return Path(made) / "pg"


class Doomed:
    """A server with a migrated database, and workers that use it."""

    def __init__(self, folder: Path, **options: str) -> None:
        subprocess.run(["cp", "-a", str(migrated_server()), str(folder)], check=True)
        with (folder / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in options.items())
        self.server = Server(folder, VERSION).start()
        self.url = self.server.url("postgres")
        self.env = environment_of(self.server)
        self.made: list[RunWorkers] = []
        self.folder = folder.parent

    def runworkers(self, *flags: str, **env: str) -> RunWorkers:
        """Start workers on it."""
        log = self.folder / f"runworkers-{len(self.made)}.log"
        self.made.append(RunWorkers(log, flags, {**self.env, **env}))
        return self.made[-1]

    def query(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """Run a statement on a new connection."""
        parts = database_settings(self.url)
        with psycopg.connect(
            host=parts["HOST"],
            user=parts["USER"],
            dbname=parts["NAME"],
            options="-c default_transaction_read_only=off",
            autocommit=True,
        ) as connection:
            cursor = connection.execute(statement, params or None)
            return cursor.fetchall() if cursor.description else []

    def enqueue(self, handler: str, journal: str, word: str, seconds: float) -> None:
        """Enqueue with plain SQL: a job is a row."""
        self.query(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, "
            "jsonb_build_object('journal', %s::text, 'word', %s::text, "
            "'seconds', %s::float8))",
            f"tests.sample.{handler}",
            journal,
            word,
            seconds,
        )

    def statuses(self) -> list[str]:
        """The statuses of all archived jobs."""
        rows = self.query("SELECT status FROM jobqueue_archivedjob")
        return [status for (status,) in rows]

    def is_empty(self) -> bool:
        """Whether no job is queued or running."""
        return not self.query("SELECT 1 FROM jobqueue_queuedjob LIMIT 1")

    def close(self) -> None:
        """End everything."""
        for one in self.made:
            one.close()
        self.server.stop("immediate")


@pytest.fixture
def doomed() -> Iterator[Doomed]:
    """A server that may be treated badly."""
    with tempfile.TemporaryDirectory(prefix="jq-") as folder:
        made = Doomed(Path(folder) / "pg")
        yield made
        made.close()


Start = Callable[..., RunWorkers]
