"""The server and the database that the admin is measured on."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.environment import ROOT
from testproject.postgres import Server, folder_for

DATABASE: Final = "benchmark_admin_review"
# Nothing is measured that waits for the disk.
OPTIONS: Final = {
    "shared_buffers": "1GB",
    "fsync": "off",
    "max_wal_size": "8GB",
    "maintenance_work_mem": "256MB",
    # What it costs would be counted as the work of pages.
    "autovacuum": "off",
}


@contextmanager
def database(*, keep: bool) -> Iterator[bool]:
    """A database of our own on a server of our own, behind Django's default connection;
    yields whether it was kept by an earlier run. Without ``keep`` both are gone at the
    end."""
    folder = folder_for("admin-review", ROOT / ".cache")
    server = Server(folder, 18, OPTIONS).start()
    try:
        os.environ["DATABASE_URL"] = server.url()
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        yield _connected()
    finally:
        _close()
        server.stop("fast")
        if not keep:
            _remove(folder)


def _connected() -> bool:
    import django
    from django.conf import settings

    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
        was_kept = cursor.fetchone() is not None
    connection.settings_dict["TEST"]["NAME"] = DATABASE
    connection.creation.create_test_db(
        verbosity=0,
        autoclobber=True,
        serialize=False,  # else Django would read all that was kept
        keepdb=was_kept,
    )
    return was_kept


def _close() -> None:
    from django.db import connections

    connections.close_all()


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
