"""Which database this is, whatever its alias, host or name; and whether hosts may work
on it."""

from __future__ import annotations

from enum import Enum
from typing import Final

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


class Sleep(Enum):
    """Why hosts do nothing in this database, as a sentence."""

    COPY = (
        "This database is a copy: it is not the one that workers used before, but was "
        "restored from a dump of it."
    )
    ASKED = "This database was put to sleep with jobqueue sleep."


def identity(db: Database) -> str:
    """The server's system identifier, and the oids of the database and of the table of
    queued jobs."""
    ((text,),) = db.fetch(IDENTITY)
    return str(text)


def read_sleep(db: Database) -> Sleep | None:
    """Why hosts are to do nothing here; None if they may work."""
    return _read(db)[0]


def check_in(db: Database) -> Sleep | None:
    """The same for a host that is about to work. The first one writes down which
    database this is, and the first one after an upgrade of the server."""
    sleep, to_write = _read(db)
    if to_write is not None:
        _write(db, *to_write)
    return sleep


def wake(db: Database) -> Sleep | None:
    """Let hosts work in this database from now on, as in a new one; returns why they
    did not."""
    sleep = read_sleep(db)
    if sleep is not None:
        db.run(FORGET)
    return sleep


def put_to_sleep(db: Database) -> None:
    """Have hosts that start do nothing here."""
    _write(db, ASLEEP, _server(db)[0])


def _read(db: Database) -> tuple[Sleep | None, tuple[str, int] | None]:
    """Why hosts are to do nothing, and what is to be written down."""
    written = db.fetch(WRITTEN)  # first, or each try without migrations would be news
    version, own = _server(db)
    if not written:
        return None, (own, version) if own else None
    before, version_before = written[0]
    if before == ASLEEP:
        return Sleep.ASKED, None
    if own in ("", before):
        return None, None
    if version > version_before and _tables(own) == _tables(before):
        return None, (own, version)  # pg_upgrade: another server has the same oids
    return Sleep.COPY, None


def _server(db: Database) -> tuple[int, str]:
    """The server's major version, and the identity; empty if we may not ask."""
    ((version, may_ask),) = db.fetch(SERVER)
    return version, identity(db) if may_ask else ""


def _tables(identity: str) -> str:
    """The oids of an identity."""
    return identity.partition("/")[2]


def _write(db: Database, identity: str, version: int) -> None:
    db.run(WRITE, {"identity": identity, "version": version})
