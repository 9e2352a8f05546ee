"""The embedded PostgreSQL that all systems share, each in databases of its own."""

from __future__ import annotations

import fcntl
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
from psycopg import sql

from benchmarks.environment import REQUIREMENTS, ROOT
from benchmarks.processes import cpu
from testproject.postgres import Server, database_settings, folder_for

VERSION: Final = 18
PATIENCE: Final = 10.0  # seconds for a server to end
DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
SHOWN: Final = (*DURABLE, "shared_buffers", "max_connections", "autovacuum")

Connection = psycopg.Connection[tuple[Any, ...]]


class Busy(Exception):
    """Another run is under way."""


class Postgres:
    """A server with PostgreSQL's defaults. Raises ValueError if it is not durable."""

    def __init__(self, folder: Path) -> None:
        self._server = Server(folder, VERSION).start()
        self.pid = self._server.pid
        parts = database_settings(self._server.url())
        self.host, self.user = str(parts["HOST"]), str(parts["USER"])
        self.admin = self.connect("postgres")
        settings = self.settings()
        lax = [name for name in DURABLE if settings[name] != "on"]
        if lax:
            raise ValueError(f"Not durable: {', '.join(lax)} is not on.")

    def connect(self, database: str) -> Connection:
        """A connection in autocommit mode."""
        return psycopg.connect(
            host=self.host, user=self.user, dbname=database, autocommit=True
        )

    def env(self, database: str) -> dict[str, str]:
        """By these variables libpq finds a database."""
        return {"PGHOST": self.host, "PGUSER": self.user, "PGDATABASE": database}

    def settings(self) -> dict[str, str]:
        """The server's version and settings that matter here."""
        found = {"server_version": ""} | dict.fromkeys(SHOWN, "")
        return {name: str(self._value(f"SHOW {name}")) for name in found}

    def create(self, database: str, template: str | None = None) -> None:
        """Make a database, empty or a copy."""
        statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database))
        if template is not None:
            # Written to the log page by page, a million rows would fill it.
            statement += sql.SQL(" TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(template)
            )
        self.admin.execute(statement)

    def drop(self, database: str) -> None:
        """Drop a database, whoever uses it; it need not be there."""
        self.admin.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                sql.Identifier(database)
            )
        )

    def checkpoint(self) -> None:
        """Write out everything, so that no trial pays for what was before it."""
        self.admin.execute("CHECKPOINT")

    def cpu(self) -> float:
        """CPU seconds of the server until now."""
        return cpu(self.pid)

    def counters(self, database: str) -> tuple[int, int]:
        """Transactions in a database and blocks that they touched, until now.

        A backend tells these when it ends, or when it has been idle for ten seconds.
        """
        self.admin.execute("SELECT pg_stat_clear_snapshot()")
        rows = self.admin.execute(
            "SELECT xact_commit + xact_rollback, blks_hit + blks_read "
            "FROM pg_stat_database WHERE datname = %s",
            [database],
        ).fetchall()
        return int(rows[0][0]), int(rows[0][1])

    def stop(self) -> None:
        """Stop it at once; its data are thrown away."""
        self.admin.close()
        self._server.stop("immediate")

    def _value(self, statement: str) -> Any:
        row = self.admin.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


@contextmanager
def exclusive_folder() -> Iterator[Path]:
    """A folder for one run, empty at first and gone at the end. Raises Busy."""
    cache = ROOT / ".cache"
    cache.mkdir(exist_ok=True)
    with REQUIREMENTS.open() as lock:  # a file that is there anyway
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy("Another run of the benchmarks is under way.") from None
        folder = folder_for("bench", cache)
        _clear(folder)
        folder.mkdir()
        try:
            yield folder
        finally:
            _clear(folder)


def _clear(folder: Path) -> None:
    """Remove the folder, and end a server that was left in it, also a half-made one."""
    data = folder / "pg"
    with suppress(OSError, ValueError, IndexError, psutil.Error):
        # Negative is the number of the process that initdb lets fill the folder.
        pid = abs(int((data / "postmaster.pid").read_text().splitlines()[0]))
        process = psutil.Process(pid)
        if Path(process.cwd()) == data.resolve():  # the number may be another's by now
            process.send_signal(signal.SIGQUIT)  # an immediate shutdown
            process.wait(PATIENCE)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(folder: Path) -> Iterator[Postgres]:
    """A server with its data below the folder, stopped at the end."""
    server = Postgres(folder / "pg")
    try:
        yield server
    finally:
        server.stop()
