"""Reads what PostgreSQL says of itself and of our tables."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

TABLES: Final = r"""
SELECT relname, pg_total_relation_size(relid), coalesce(n_dead_tup, 0)
  FROM pg_stat_user_tables
 WHERE relname LIKE 'jobqueue\_%%' AND pg_table_is_visible(relid)
 ORDER BY relname
"""

SERVER: Final = """
SELECT current_setting('server_version'),
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database())
"""


class Table(NamedTuple):
    """A table of the job queue."""

    name: str
    size: int  # bytes, with its indexes
    dead_rows: int


class Server(NamedTuple):
    """The server and the database of the jobs."""

    version: str
    xid_age: int


def tables(db: Database) -> list[Table]:
    """Our tables, by name."""
    return [Table(*row) for row in db.fetch(TABLES)]


def server(db: Database) -> Server:
    """The server, now."""
    (row,) = db.fetch(SERVER)
    return Server(*row)
