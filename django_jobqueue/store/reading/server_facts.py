"""Reads what PostgreSQL says of itself, of the role, and of the job queue's tables."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

# The two clocks are read in the middle of one round trip, by the caller. Of sessions of
# other roles, a role without pg_read_all_stats sees the database, but not the type.
# Before PostgreSQL 17 there is no transaction_timeout. Where the data are is shown to
# those with pg_read_all_settings.
FACTS: Final = """
SELECT version(), current_setting('server_version_num')::int,
       extract(epoch FROM clock_timestamp())::float8, pg_is_in_recovery(),
       current_setting('default_transaction_read_only') = 'on',
       pg_encoding_to_char(encoding), age(datfrozenxid),
       current_setting('max_connections')::int
         - current_setting('superuser_reserved_connections')::int,
       (SELECT count(*) FROM pg_stat_activity
         WHERE datid IS NOT NULL
           AND coalesce(backend_type, 'client backend') = 'client backend'),
       current_setting('autovacuum') = 'on' AND current_setting('track_counts') = 'on',
       current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
       (SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'),
       (SELECT setting::int FROM pg_settings
         WHERE name = 'idle_in_transaction_session_timeout'),
       (SELECT setting::int FROM pg_settings WHERE name = 'lock_timeout'),
       coalesce((SELECT setting::int FROM pg_settings
                  WHERE name = 'transaction_timeout'), 0),
       (SELECT setting::int FROM pg_settings WHERE name = 'idle_session_timeout'),
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE'),
       coalesce((SELECT setting FROM pg_settings WHERE name = 'data_directory'), ''),
       inet_server_addr() IS NULL OR inet_server_addr() = inet_client_addr()
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
# They hold their locks, and dead rows of the whole database, until somebody ends them.
PREPARED: Final = """
SELECT gid, extract(epoch FROM statement_timestamp() - prepared)::float8
  FROM pg_prepared_xacts
 WHERE database = current_database()
 ORDER BY prepared
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
# Not of information_schema, which hides what the role may not read.
COLUMNS: Final = r"""
SELECT relation.relname::text, attribute.attname::text
  FROM pg_attribute AS attribute
  JOIN pg_class AS relation ON relation.oid = attribute.attrelid
 WHERE relation.relname LIKE 'jobqueue\_%%' AND relation.relkind IN ('r', 'p', 'v')
   AND attribute.attnum > 0 AND NOT attribute.attisdropped
   AND pg_table_is_visible(relation.oid)
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
    lock_timeout: int  # milliseconds; 0 is none
    transaction_timeout: int  # milliseconds; 0 is none
    idle_session_timeout: int  # milliseconds; 0 is none
    sees_sessions: bool  # those of other roles
    folder: str  # of the data; empty if the role may not know it
    is_local: bool  # on this machine


class Slot(NamedTuple):
    """A replication slot that nobody reads."""

    name: str
    log_size: int  # bytes


class PreparedTransaction(NamedTuple):
    """The first half of a two-phase commit, which waits for the second."""

    gid: str
    age: float  # seconds


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


def prepared_transactions(db: Database) -> list[PreparedTransaction]:
    """The prepared transactions of this database, the oldest first."""
    return [PreparedTransaction(*row) for row in db.fetch(PREPARED)]


def table_facts(db: Database) -> list[TableFacts]:
    """Our tables, by name."""
    return [TableFacts(*row) for row in db.fetch(TABLES)]


def indexes(db: Database) -> dict[str, bool]:
    """For each index of our tables, by name: True if it is valid."""
    return {str(name): bool(valid) for name, valid in db.fetch(INDEXES)}


def columns(db: Database) -> set[tuple[str, str]]:
    """The columns of our tables: table and name."""
    return {(table, column) for table, column in db.fetch(COLUMNS)}
