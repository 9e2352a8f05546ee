"""A database that refuses to change jobs of one type."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

BEGIN = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'not today'; END $$;
CREATE TRIGGER refuse BEFORE {what} ON jobqueue_queuedjob FOR EACH ROW
  WHEN (OLD.job_type = '{job_type}' AND {only}) EXECUTE FUNCTION refuse()
"""


@contextmanager
def refusing(
    job_type: str, what: str = "UPDATE OR DELETE", only: str = "TRUE"
) -> Iterator[None]:
    """Refuse changes of its rows in the queue meanwhile, with the text "not today"."""
    with connection.cursor() as cursor:
        cursor.execute(BEGIN.format(what=what, job_type=job_type, only=only))
        try:
            yield
        finally:
            cursor.execute("DROP FUNCTION refuse CASCADE")
