"""Which database this is, whatever its alias, host or name."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database

# A dump that is restored beside its original has another one; a copy of the server's
# files, such as a snapshot, has the same. Everybody may call pg_control_system().
IDENTITY: Final = """
SELECT concat_ws('/', system_identifier,
                 (SELECT oid FROM pg_database WHERE datname = current_database()),
                 'jobqueue_queuedjob'::regclass::oid)
  FROM pg_control_system()
"""


def identity(db: Database) -> str:
    """The server's system identifier, and the oids of the database and of the table of
    queued jobs."""
    ((text,),) = db.fetch(IDENTITY)
    return str(text)
