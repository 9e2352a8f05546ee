"""The statement that writes to rows what the code declares, where it differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta

from django_jobqueue.store.connection import Database

# A row that is as declared is not even locked: a start of a hundred workers writes
# nothing, and waits for nobody who has changed such a row and not committed. One that
# differs is locked before it is compared again, in order of the names.
_DECLARING = """
WITH declared AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset(%(declared)s::jsonb)
                AS declared (name text, {typed})
), changed AS MATERIALIZED (
  SELECT held.name
    FROM declared JOIN {table} AS held ON held.name = declared.name
   WHERE {differs_from_declared}
   ORDER BY held.name
     FOR NO KEY UPDATE OF held {wait}
)
INSERT INTO {table} AS held (name, {columns}{more})
SELECT name, {columns}{values} FROM declared
 WHERE name IN (SELECT name FROM changed)
    OR NOT EXISTS (SELECT FROM {table} AS held WHERE held.name = declared.name)
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
   SET {assigned}, declared_at = clock_timestamp(){also}
 WHERE {differs_from_excluded}
"""


class Declaring:
    """It for one table, whose ``columns`` the code declares, by type."""

    def __init__(
        self,
        table: str,
        columns: Mapping[str, str],
        *,
        differs: str = "{differ}",
        inserted: Mapping[str, str] | None = None,
        updated: Mapping[str, str] | None = None,
        changed: Collection[str] = (),
    ) -> None:
        """``differs`` says when a row is to be written, where ``{differ}`` is that one
        of these columns does; ``inserted`` and ``updated`` are SQL for further columns
        of a row that is new, or is not. Of a row that is there only the ``changed``
        columns are written, if some are given."""
        inserted, updated = inserted or {}, updated or {}
        written = [name for name in columns if not changed or name in changed]
        self.columns = ", ".join(columns)
        self.typed = ", ".join(f"{name} {of}" for name, of in columns.items())

        def differing(row: str) -> str:
            ours, theirs = (
                ", ".join(f"{one}.{column}" for column in written)
                for one in ("held", row)
            )
            return differs.format(differ=f"({ours}) IS DISTINCT FROM ({theirs})")

        self.statement, self.unless_locked = (
            _DECLARING.format(
                table=table,
                columns=self.columns,
                typed=self.typed,
                assigned=", ".join(f"{name} = excluded.{name}" for name in written),
                differs_from_declared=differing("declared"),
                differs_from_excluded=differing("excluded"),
                more="".join(f", {name}" for name in inserted),
                values="".join(f", {value}" for value in inserted.values()),
                also="".join(
                    f",\n       {name} = {to}" for name, to in updated.items()
                ),
                wait=wait,
            )
            for wait in ("", "SKIP LOCKED")
        )

    def write(self, db: Database, declared: str, *, waits: bool = True) -> None:
        """Write these rows, given as JSON; unless ``waits``, without those that others
        have locked."""
        statement = self.statement if waits else self.unless_locked
        db.run(statement, {"declared": declared})


def seconds_of(duration: timedelta) -> str:
    """It as an interval in JSON."""
    return f"{duration.total_seconds()} seconds"
