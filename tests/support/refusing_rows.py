"""Rows that a trigger of the project lets nobody change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection

NO: Final = {"refused": True}  # the data of a row that is refused
TRIGGER: Final = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
  $body$ BEGIN RAISE 'not this one'; END $body$;
CREATE {trigger} ON {table} {deferred} FOR EACH ROW
  WHEN ({row}.data -> 'refused' = 'true') EXECUTE FUNCTION refuse()
"""


@contextmanager
def refused(verb: str, table: str, *, at_commit: bool = False) -> Iterator[None]:
    """In this block no row with these data is inserted, updated or deleted."""
    statement = TRIGGER.format(
        trigger=f"CONSTRAINT TRIGGER refuse AFTER {verb}"
        if at_commit
        else f"TRIGGER refuse BEFORE {verb}",
        deferred="DEFERRABLE INITIALLY DEFERRED" if at_commit else "",
        table=table,
        row="NEW" if verb == "INSERT" else "OLD",
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse() CASCADE")
