"""The embedded PostgreSQL that all systems share, each in databases of its own."""

from __future__ import annotations

import fcntl
import shutil
import signal
from collections.abc import Iterator, Mapping
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
CONNECTIONS: Final = "300"  # of all systems at once
SHOWN: Final = (*DURABLE, "shared_buffers", "max_connections", "autovacuum")

Connection = psycopg.Connection[tuple[Any, ...]]


class Busy(Exception):
    """Another run is under way."""


class Postgres:
    """A server with PostgreSQL's defaults. Raises ValueError if it is not durable."""

    def __init__(
        self,
        folder: Path,
        version: int = VERSION,
        options: Mapping[str, str] | None = None,
    ) -> None:
        given = {"max_connections": CONNECTIONS, **(options or {})}
        self._server = Server(folder, version, given).start()
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

    def cpu(self) -> float:
        """CPU seconds of the server until now."""
        return cpu(self.pid)

    def number(self, statement: str) -> int:
        """What a query counts."""
        return int(self._value(statement))

    @contextmanager
    def without_autovacuum(self) -> Iterator[None]:
        """Its transactions count as those of a database, and are nobody's queries."""
        self._alter("SET autovacuum = off")
        try:
            yield
        finally:
            self._alter("RESET autovacuum")

    def stop(self) -> None:
        """Stop it at once; its data are thrown away."""
        self.admin.close()
        self._server.stop("immediate")

    def _alter(self, setting: str) -> None:
        self.admin.execute(f"ALTER SYSTEM {setting}".encode())
        self.admin.execute("SELECT pg_reload_conf()")

    def _value(self, statement: str) -> Any:
        row = self.admin.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


class Database:
    """A database of one trial, which is dropped at the end, whoever uses it."""

    def __init__(self, server: Postgres, name: str, template: str) -> None:
        self.name = name
        self._server = server
        server.create(name, template)
        self.connection = server.connect(name)

    def env(self) -> dict[str, str]:
        """By these variables it is found."""
        return self._server.env(self.name)

    def number(self, statement: str) -> int:
        """What a query counts."""
        row = self.connection.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def counters(self) -> tuple[int, int]:
        """Transactions and the blocks that they touched, until now.

        A backend tells these when it ends, or when it has been idle for ten seconds.
        """
        self._server.admin.execute("SELECT pg_stat_clear_snapshot()")
        rows = self._server.admin.execute(
            "SELECT xact_commit + xact_rollback, blks_hit + blks_read "
            "FROM pg_stat_database WHERE datname = %s",
            [self.name],
        ).fetchall()
        return int(rows[0][0]), int(rows[0][1])

    def wal(self) -> int:
        """Bytes of the server's write-ahead log until now."""
        return self._server.number(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint"
        )

    def connections(self) -> int:
        """How many there are, but for our own."""
        ours = self.connection.info.backend_pid
        return self._server.number(
            "SELECT count(*) FROM pg_stat_activity "
            f"WHERE datname = '{self.name}' AND pid <> {ours}"
        )

    def settle(self) -> None:
        """Write out everything, so that no trial pays for what was before it."""
        self._server.admin.execute("CHECKPOINT")

    def cpu(self) -> float:
        """CPU seconds of the server until now."""
        return self._server.cpu()

    def close(self) -> None:
        """Drop it."""
        self.connection.close()
        self._server.drop(self.name)


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
def running(
    folder: Path, version: int = VERSION, options: Mapping[str, str] | None = None
) -> Iterator[Postgres]:
    """A server with its data below the folder, stopped at the end."""
    server = Postgres(folder / "pg", version, options)
    try:
        yield server
    finally:
        server.stop()
