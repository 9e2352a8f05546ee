"""A database server of a test's own, to be stopped, killed and cut off."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fasteners import InterProcessLock

from testproject.postgres import Server, database_settings
from tests import settings
from tests.support import database
from tests.support.commands import ROOT
from tests.support.database import fingerprint
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

VERSION = int(os.environ.get("JOBQUEUE_POSTGRES", "18"))
CACHE = ROOT / ".cache"


def migrated_folder() -> Path:
    """The data of a stopped server with a migrated database, to be copied; made when
    the code has changed."""
    folder = CACHE / f"migrated-{VERSION}-{fingerprint()}"
    with InterProcessLock(CACHE / "migrated-server.lock"):
        if not folder.exists():
            for old in CACHE.glob("migrated-*-*"):
                shutil.rmtree(old)
            with tempfile.TemporaryDirectory(prefix="jq-") as made:
                os.chmod(made, 0o755)  # the server may run as another user
                server = Server(Path(made) / "pg", VERSION, {"fsync": "off"}).start()
                try:
                    _migrate(server)
                    _drop_templates(server.url("postgres"))
                finally:
                    server.stop()
                _copy(Path(made) / "pg", CACHE / "unfinished")
                (CACHE / "unfinished").rename(folder)
    return folder


def _migrate(server: Server) -> None:
    """By a dump of the database that those of the tests are copies of, if there is one:
    it takes a tenth of the time."""
    if settings.SERVER is not None:
        template = settings.SERVER.url(database.PREFIX + fingerprint())
        dump = subprocess.run(
            [settings.SERVER.program("pg_dump"), template],
            capture_output=True,
            check=False,
        )
        if dump.returncode == 0:
            subprocess.run(
                [server.program("psql"), "-q", "-v", "ON_ERROR_STOP=1", server.url()],
                input=dump.stdout,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            return
    subprocess.run(
        [sys.executable, "-m", "django", "migrate", "-v", "0"],
        env={
            **os.environ,
            "DATABASE_URL": server.url(),
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "PYTHONPATH": str(ROOT),
        },
        check=True,
    )


def _copy(source: Path, target: Path) -> None:
    """With the owners of its files."""
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def _drop_templates(url: str) -> None:
    """Half of the files that are copied are theirs."""
    with _connected(url) as connection:
        for name in ("template0", "template1"):
            connection.execute(f"ALTER DATABASE {name} IS_TEMPLATE false")
            connection.execute(f"DROP DATABASE {name}")


def _connected(url: str) -> psycopg.Connection[Any]:
    parts = database_settings(url)
    return psycopg.connect(
        host=parts["HOST"],
        user=parts["USER"],
        dbname=parts["NAME"],
        options="-c default_transaction_read_only=off",
        autocommit=True,
    )


class Doomed:
    """A server with a migrated database, and workers that use it."""

    def __init__(self, folder: Path, **options: str) -> None:
        _copy(migrated_folder(), folder)
        with (folder / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in options.items())
        self.server = Server(folder, VERSION).start()
        self.url = self.server.url("postgres")
        self.made: list[RunWorkers] = []
        self.folder = folder.parent

    def runworkers(self, *flags: str, **env: str) -> RunWorkers:
        """Start workers on it."""
        log = self.folder / f"runworkers-{len(self.made)}.log"
        self.made.append(RunWorkers(log, *flags, **{"DATABASE_URL": self.url, **env}))
        return self.made[-1]

    def query(self, statement: str, *params: Any) -> list[tuple[Any, ...]]:
        """Run a statement on a new connection."""
        with _connected(self.url) as connection:
            cursor = connection.execute(statement, params or None)
            return cursor.fetchall() if cursor.description else []

    def enqueue(
        self, handler: str, journal: str = "", word: str = "", queue: str = "default"
    ) -> None:
        """Enqueue with plain SQL: a job is a row."""
        given = {"journal": journal, "word": word}
        data = {name: value for name, value in given.items() if value}
        self.query(
            "INSERT INTO jobqueue_queuedjob (job_type, queue, data)"
            " VALUES (%s, %s, %s::jsonb)",
            f"tests.sample.{handler}",
            queue,
            json.dumps(data),
        )

    def started(self, run: RunWorkers) -> list[int]:
        """Wait until workers of this host are there; return their process ids."""
        name = f"%:{run.process.pid}"
        rows: list[tuple[int]] = eventually(
            lambda: self.query(
                "SELECT pid FROM jobqueue_worker"
                " WHERE state = 'running' AND supervisor LIKE %s",
                name,
            ),
            what=lambda: run.output,
        )
        return [pid for (pid,) in rows]

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


@contextmanager
def doomed_server(**options: str) -> Iterator[Doomed]:
    """A server that may be treated badly, with these options."""
    with tempfile.TemporaryDirectory(prefix="jq-") as folder:
        made = Doomed(Path(folder) / "pg", **options)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def doomed() -> Iterator[Doomed]:
    """A server of this test alone."""
    with doomed_server() as made:
        yield made
