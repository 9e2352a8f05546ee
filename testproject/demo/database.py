"""The database of the demo: that of DATABASE_URL, or a server of its own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from testproject.postgres import Server, folder_for, lock_of

VERSIONS: Final = range(14, 19)


@contextmanager
def database(files: Path) -> Iterator[str]:
    """Say where the database is, for this process and those that it starts.

    A server that is started here is stopped at the end; one that runs already is not.
    """
    if os.environ.get("DATABASE_URL"):
        yield "the database of DATABASE_URL"
        return
    folder = folder_for("pg18", files)
    before = _identity(folder)
    server = Server(folder)
    try:
        os.environ["DATABASE_URL"] = server.start().url()
        yield f"an embedded PostgreSQL 18 in {folder}"
    finally:
        os.environ.pop("DATABASE_URL", None)
        if _identity(folder) != before:
            server.stop()


def remove_servers(*bases: Path) -> None:
    """Stop the embedded servers of these folders, and remove their data."""
    for version in VERSIONS:
        for base in bases:
            folder = folder_for(f"pg{version}", base)
            if _identity(folder):
                Server(folder, version).start().stop()
            shutil.rmtree(folder, ignore_errors=True)
            lock_of(folder).unlink(missing_ok=True)


def _identity(folder: Path) -> list[str]:
    """Process id, folder and start of the server there, as it wrote them; empty if it
    was stopped."""
    try:
        return (folder / "postmaster.pid").read_text().splitlines()[:3]
    except FileNotFoundError:
        return []
