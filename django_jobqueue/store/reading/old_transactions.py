"""Finds the oldest transaction that keeps PostgreSQL from removing dead rows."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.store.connection import Database

# Our own transaction is not one that anybody has to end.
# Without pg_read_all_stats the sessions of other roles have no xact_start. A VACUUM
# keeps nothing from being removed, however long it takes; nor does a transaction that
# has neither written nor a snapshot.
OLDEST: Final = """
SELECT pid, name, state, age
  FROM (SELECT activity.pid, activity.application_name AS name, activity.state,
               extract(epoch FROM statement_timestamp() - activity.xact_start)::float8
               AS age
          FROM pg_stat_activity AS activity
         WHERE activity.datname = current_database()
           AND activity.pid <> pg_backend_pid()
           AND activity.backend_type = 'client backend'
           AND (activity.backend_xid IS NOT NULL OR activity.backend_xmin IS NOT NULL)
           AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum AS vacuum
                            WHERE vacuum.pid = activity.pid)
        UNION ALL
        SELECT NULL, gid, 'prepared',
               extract(epoch FROM statement_timestamp() - prepared)::float8
          FROM pg_prepared_xacts
         WHERE database = current_database()) AS open
 WHERE age IS NOT NULL
 ORDER BY age DESC
 LIMIT 1
"""


class OldTransaction(NamedTuple):
    """An open transaction."""

    pid: int | None  # of its session; None if it is prepared
    name: str  # the application's, or that of the prepared transaction
    state: str  # of the session, such as "idle in transaction", or prepared
    age: float  # seconds


def oldest(db: Database) -> OldTransaction | None:
    """The oldest one in this database, if the role may see it."""
    for row in db.fetch(OLDEST):
        return OldTransaction(*row)
    return None
