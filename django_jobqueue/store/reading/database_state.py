"""Reads what PostgreSQL says of the tables and transactions of the jobs' database."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

TABLES: Final = r"""
SELECT relname, pg_total_relation_size(relid), coalesce(n_dead_tup, 0)
  FROM pg_stat_user_tables
 WHERE relname LIKE 'jobqueue\_%%' AND pg_table_is_visible(relid)
 ORDER BY relname
"""

# Our own transaction is not one that anybody has to end. Without the role
# pg_read_all_stats, PostgreSQL shows sessions of the same role alone.
SERVER: Final = """
SELECT current_setting('server_version'),
       (SELECT age(datfrozenxid) FROM pg_database WHERE datname = current_database()),
       coalesce(
         (SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::float8
            FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()
             AND backend_type = 'client backend'), 0.0)
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
    oldest_transaction: float  # seconds; 0 if none is open


def tables(db: Database) -> list[Table]:
    """Our tables, by name."""
    return [Table(*row) for row in db.fetch(TABLES)]


def server(db: Database) -> Server:
    """The server, now."""
    (row,) = db.fetch(SERVER)
    return Server(*row)
