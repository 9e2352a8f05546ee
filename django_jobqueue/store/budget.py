"""How long the statements of a transaction may take."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database

# Local: a rollback, also one to a savepoint, brings the former limit back.
LIMIT_TIME: Final = "SELECT set_config('statement_timeout', %(limit)s, true)"


def limit_time(db: Database, milliseconds: int) -> None:
    """Let no further statement of this transaction take longer."""
    db.fetch(LIMIT_TIME, {"limit": str(milliseconds)})
