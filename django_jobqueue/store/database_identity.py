"""Which database this is, whatever its alias, host or name; and whether hosts may work
on it."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, NamedTuple

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import Database

# A dump that is restored beside its original has another one; a copy of the server's
# files, such as a snapshot, has the same. Everybody may call pg_control_system(), where
# nobody took that away.
IDENTITY: Final = """
SELECT concat_ws('/', system_identifier,
                 (SELECT oid FROM pg_database WHERE datname = current_database()),
                 'jobqueue_queuedjob'::regclass::oid)
  FROM pg_control_system()
"""
SERVER: Final = """
SELECT current_setting('server_version_num')::integer / 10000,
       has_function_privilege('pg_control_system()', 'EXECUTE')
"""
WRITTEN: Final = """
SELECT identity, server_version FROM jobqueue_databaseidentity
"""
WRITE_FIRST: Final = """
INSERT INTO jobqueue_databaseidentity (id, identity, server_version)
VALUES (1, %(identity)s, %(version)s)
    ON CONFLICT (id) DO NOTHING
"""
WRITE: Final = """
INSERT INTO jobqueue_databaseidentity (id, identity, server_version)
VALUES (1, %(identity)s, %(version)s)
    ON CONFLICT (id) DO UPDATE
   SET identity = excluded.identity, server_version = excluded.server_version,
       written_at = excluded.written_at
"""
FORGET: Final = """
DELETE FROM jobqueue_databaseidentity
"""
ASLEEP: Final = ""  # is no identity


CHECK_EVERY: Final = 5.0  # seconds


class Sleep(Enum):
    """Why hosts do nothing in this database, as a sentence."""

    COPY = (
        "This database is a copy: it is not the one that workers used before, but was "
        "restored from a dump of it."
    )
    # A dump that is restored by a newer server may have the very oids that pg_upgrade
    # keeps: each new server counts them from the same number.
    UPGRADE = (
        "Since workers used this database, its server was upgraded, or it was restored "
        "from a dump by a newer server: they cannot be told apart."
    )
    UNKNOWN = (
        "This database does not say which one it is: a restore goes on, or its tables "
        "were emptied."
    )
    ASKED = "This database was put to sleep with jobqueue sleep."


class Row(NamedTuple):
    """The database that hosts worked in, and the major version of its server."""

    identity: str
    server_version: int


def identity(db: Database) -> str:
    """The server's system identifier, and the oids of the database and of the table of
    queued jobs."""
    ((text,),) = db.fetch(IDENTITY)
    return str(text)


def read_sleep(db: Database) -> Sleep | None:
    """Why hosts are to do nothing here; None if they may work."""
    row = read(db)  # first, or each try without migrations would be news
    return None if row is None else _sleep(row, _own(db))


def check_in(db: Database) -> Sleep | None:
    """The same for a host that is about to work. The first one writes down which
    database this is."""
    if read(db) is None and (own := _own(db)).identity:
        db.run(WRITE_FIRST, _params(own))
    return read_sleep(db)


def check_again(db: Database) -> Sleep | None:
    """The same for a host that works, on each new connection: its database may have
    been restored since the last one. It has written down which one it is, so a row that
    is missing will come with the rest of a dump."""
    row, own = read(db), _own(db)
    if row is None:
        return Sleep.UNKNOWN if own.identity else None
    return _sleep(row, own)


def ensure_awake(db: Database) -> None:
    """Raises StoreUnavailable where a host that works is to do nothing from now on."""
    if sleep := check_again(db):
        raise unavailable(sleep)


def unavailable(sleep: Sleep) -> StoreUnavailable:
    """The error of a host that is to do nothing, which asks again soon."""
    return StoreUnavailable(sleep.value, retry_in=CHECK_EVERY, is_outage=False)


def wake(db: Database) -> Sleep | None:
    """Let hosts work in this database from now on; returns why they did not."""
    sleep, own = read_sleep(db), _own(db)
    # Hosts that work already want a row, too: see check_again().
    write(db, own if own.identity else None)
    return sleep


def put_to_sleep(db: Database) -> Row | None:
    """Have hosts that start do nothing here; returns the row before, for write()."""
    before = read(db)
    write(db, Row(ASLEEP, _own(db).server_version))
    return before


def read(db: Database) -> Row | None:
    """The stored identity."""
    rows = db.fetch(WRITTEN)
    return Row(*rows[0]) if rows else None


def write(db: Database, row: Row | None) -> None:
    """Write this down; or nothing, as in a database that no host has used."""
    if row is None:
        db.run(FORGET)
    else:
        db.run(WRITE, _params(row))


def _sleep(row: Row, own: Row) -> Sleep | None:
    if row.identity == ASLEEP:
        return Sleep.ASKED
    if own.identity in ("", row.identity):
        return None
    is_newer = own.server_version > row.server_version
    if is_newer and _tables(own.identity) == _tables(row.identity):
        return Sleep.UPGRADE
    return Sleep.COPY


def _own(db: Database) -> Row:
    """The row of this database; its identity is empty if we may not ask."""
    ((version, may_ask),) = db.fetch(SERVER)
    return Row(identity(db) if may_ask else "", version)


def _tables(identity: str) -> str:
    """The oids of an identity."""
    return identity.partition("/")[2]


def _params(row: Row) -> dict[str, Any]:
    return {"identity": row.identity, "version": row.server_version}
