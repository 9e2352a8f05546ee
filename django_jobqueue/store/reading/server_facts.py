"""Reads what PostgreSQL says of itself, of the role, and of the job queue's tables."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

# The two clocks are read in the middle of one round trip, by the caller.
FACTS: Final = """
SELECT version(), current_setting('server_version_num')::int,
       extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery(),
       current_setting('default_transaction_read_only') = 'on',
       pg_encoding_to_char(encoding), age(datfrozenxid),
       current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
       current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
       current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
       (SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'),
       (SELECT setting::int FROM pg_settings
         WHERE name = 'idle_in_transaction_session_timeout')
  FROM pg_database WHERE datname = current_database()
"""
# For a slot that nobody reads, the server keeps its log, and perhaps dead rows.
SLOTS: Final = """
SELECT slot_name::text,
       coalesce(pg_wal_lsn_diff(
         CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn()
              ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint
  FROM pg_replication_slots
 WHERE NOT active
 ORDER BY slot_name
"""
TABLES: Final = r"""
SELECT relation.relname::text, pg_total_relation_size(relation.oid),
       coalesce(stat.n_live_tup, 0), coalesce(stat.n_dead_tup, 0),
       coalesce('autovacuum_enabled=false' = ANY (relation.reloptions), false),
       has_table_privilege(relation.oid, 'SELECT')
         AND has_table_privilege(relation.oid, 'INSERT')
         AND has_table_privilege(relation.oid, 'UPDATE')
         AND has_table_privilege(relation.oid, 'DELETE')
  FROM pg_class AS relation
  LEFT JOIN pg_stat_user_tables AS stat ON stat.relid = relation.oid
 WHERE relation.relname LIKE 'jobqueue\_%%' AND relation.relkind IN ('r', 'p')
   AND pg_table_is_visible(relation.oid)
 ORDER BY relation.relname
"""
INDEXES: Final = r"""
SELECT index.relname::text, pg_index.indisvalid
  FROM pg_index
  JOIN pg_class AS index ON index.oid = pg_index.indexrelid
  JOIN pg_class AS relation ON relation.oid = pg_index.indrelid
 WHERE relation.relname LIKE 'jobqueue\_%%' AND pg_table_is_visible(relation.oid)
"""
COLUMNS: Final = r"""
SELECT table_name::text, column_name::text
  FROM information_schema.columns
 WHERE table_name LIKE 'jobqueue\_%%' AND table_schema = ANY (current_schemas(false))
"""


class ServerFacts(NamedTuple):
    """The server, and the settings of this session."""

    version: str
    version_number: int
    time: float  # seconds since 1970
    is_replica: bool
    is_read_only: bool
    encoding: str
    xid_age: int
    connections_allowed: int
    connections: int
    vacuums: bool
    fsync: bool
    commits_wait: bool  # until the log is on disk
    statement_timeout: int  # milliseconds; 0 is none
    idle_timeout: int  # milliseconds in a transaction; 0 is none


class Slot(NamedTuple):
    """A replication slot that nobody reads."""

    name: str
    log_size: int  # bytes


class TableFacts(NamedTuple):
    """One of our tables."""

    name: str
    size: int  # bytes, with its indexes
    live_rows: int
    dead_rows: int
    is_unvacuumed: bool
    is_writable: bool


def server_facts(db: Database) -> ServerFacts:
    """The server, now."""
    (row,) = db.fetch(FACTS)
    return ServerFacts(*row)


def unread_slots(db: Database) -> list[Slot]:
    """The replication slots that nobody reads."""
    return [Slot(*row) for row in db.fetch(SLOTS)]


def table_facts(db: Database) -> list[TableFacts]:
    """Our tables, by name."""
    return [TableFacts(*row) for row in db.fetch(TABLES)]


def indexes(db: Database) -> dict[str, bool]:
    """Whether each index of our tables is valid, by its name."""
    return {str(name): bool(valid) for name, valid in db.fetch(INDEXES)}


def columns(db: Database) -> set[tuple[str, str]]:
    """The columns of our tables: table and name."""
    return {(table, column) for table, column in db.fetch(COLUMNS)}
