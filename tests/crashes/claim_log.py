"""What the database writes down of each claim, in the order in which it saw them: the
handler of a job runs within, also where its process is killed and notes no end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import pytest
from django.db import connection

TABLES = """
CREATE TABLE claim_log (number bigserial, kind text, job uuid, job_type text,
    limit_key text, fence bigint, started_at timestamptz);
CREATE FUNCTION claim_log_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.status = 'running' THEN
    INSERT INTO claim_log (kind, job, job_type, limit_key, fence)
    VALUES ('end', OLD.id, OLD.job_type, OLD.limit_key, OLD.fence);
  END IF;
  IF TG_OP = 'UPDATE' THEN
    IF NEW.status = 'running' THEN
      INSERT INTO claim_log (kind, job, job_type, limit_key, fence, started_at)
      VALUES ('start', NEW.id, NEW.job_type, NEW.limit_key, NEW.fence, NEW.started_at);
    END IF;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER claim_log_update AFTER UPDATE OF status ON jobqueue_queuedjob
  FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION claim_log_note();
CREATE TRIGGER claim_log_delete AFTER DELETE ON jobqueue_queuedjob
  FOR EACH ROW EXECUTE FUNCTION claim_log_note();
"""


class Event(NamedTuple):
    kind: str
    job: UUID
    job_type: str
    limit_key: str | None
    fence: int
    started_at: datetime | None


@pytest.fixture
def claim_log(transactional_db: None) -> Iterator[None]:
    """The database writes down what happens to running jobs."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION claim_log_note() CASCADE; DROP TABLE claim_log")


def events() -> list[Event]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, job, job_type, limit_key, fence, started_at "
            "FROM claim_log ORDER BY number"
        )
        return [Event(*row) for row in cursor.fetchall()]


def most_at_once(events: list[Event], name: str) -> Counter[str | None]:
    """The greatest number of jobs of each key of a type that ran at once."""
    running: dict[str | None, set[UUID]] = defaultdict(set)
    most: Counter[str | None] = Counter()
    for event in events:
        if event.job_type == name:
            of_key = running[event.limit_key]
            (of_key.add if event.kind == "start" else of_key.discard)(event.job)
            most[event.limit_key] = max(most[event.limit_key], len(of_key))
    return most
