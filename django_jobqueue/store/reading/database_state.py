"""Reads the version of PostgreSQL, and the age of the database's oldest row."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

SERVER: Final = """
SELECT current_setting('server_version'),
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database())
"""


class Server(NamedTuple):
    """The server and the database of the jobs."""

    version: str
    xid_age: int


def server(db: Database) -> Server:
    """The server, now."""
    (row,) = db.fetch(SERVER)
    return Server(*row)
