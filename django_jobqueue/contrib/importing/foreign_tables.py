"""The tables of django-celery-beat and Django-Q2: read their schedules, turn them off.

Their packages need not be installed. Each row comes as JSON, so that a column that an
older release does not have is only missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django_jobqueue.store.connection import Database
from django_jobqueue.text import timezones
from django_jobqueue.text.json_reading import read_json

CELERY_BEAT: Final = "django_celery_beat_periodictask"
DJANGO_Q2: Final = "django_q_schedule"

EXISTS: Final = "SELECT to_regclass(quote_ident(%(table)s)) IS NOT NULL"

READ_CELERY_BEAT: Final = """
SELECT jsonb_build_object('row', to_jsonb(periodic), 'interval', to_jsonb(fixed),
                          'crontab', to_jsonb(crontab), 'clocked', to_jsonb(clocked),
                          'solar', to_jsonb(solar))::text
  FROM django_celery_beat_periodictask AS periodic
  LEFT JOIN django_celery_beat_intervalschedule AS fixed
         ON fixed.id = periodic.interval_id
  LEFT JOIN django_celery_beat_crontabschedule AS crontab
         ON crontab.id = periodic.crontab_id
  LEFT JOIN django_celery_beat_clockedschedule AS clocked
         ON clocked.id = periodic.clocked_id
  LEFT JOIN django_celery_beat_solarschedule AS solar
         ON solar.id = periodic.solar_id
 ORDER BY periodic.id
"""

READ_DJANGO_Q2: Final = """
SELECT to_jsonb(schedule)::text FROM django_q_schedule AS schedule ORDER BY schedule.id
"""

# A beat that runs reads its tables again when this row says that they changed.
DISABLE_CELERY_BEAT: Final = """
WITH changed AS (
  INSERT INTO django_celery_beat_periodictasks (ident, last_update)
  VALUES (1, clock_timestamp())
      ON CONFLICT (ident) DO UPDATE SET last_update = excluded.last_update
)
UPDATE django_celery_beat_periodictask
   SET enabled = false, last_run_at = NULL, date_changed = clock_timestamp()
 WHERE id = ANY (%(ids)s::bigint[]) AND enabled
RETURNING id
"""

# It has no switch; its cluster leaves out what has no more repetitions.
DISABLE_DJANGO_Q2: Final = """
UPDATE django_q_schedule SET repeats = 0
 WHERE id = ANY (%(ids)s::bigint[]) AND repeats <> 0
RETURNING id
"""

HELD: Final = """
SELECT to_jsonb(held)::text FROM jobqueue_schedules_schedule AS held
 WHERE held.name = ANY (%(names)s::text[])
"""

OF_JOB_TYPES: Final = """
SELECT to_jsonb(held)::text FROM jobqueue_schedules_schedule AS held
 WHERE held.job_type = ANY (%(job_types)s::text[]) AND held.gone_at IS NULL
   AND (held.ends_at IS NULL OR held.ends_at > statement_timestamp())
 ORDER BY held.name
"""


def exists(db: Database, table: str) -> bool:
    """True if this table is there."""
    return bool(db.fetch(EXISTS, {"table": table})[0][0])


def celery_beat(db: Database) -> list[dict[str, Any]]:
    """Each periodic task (``row``) with the rows of its schedule, by their sort."""
    return [read_json(text) for (text,) in db.fetch(READ_CELERY_BEAT)]


def django_q2(db: Database) -> list[dict[str, Any]]:
    """Each row of Django-Q2's schedules."""
    return [read_json(text) for (text,) in db.fetch(READ_DJANGO_Q2)]


def disable_celery_beat(db: Database, ids: Sequence[int]) -> int:
    """Disable these periodic tasks; return how many were enabled."""
    return len(db.fetch(DISABLE_CELERY_BEAT, {"ids": list(ids)}))


def disable_django_q2(db: Database, ids: Sequence[int]) -> int:
    """Let these schedules of Django-Q2 repeat no more; return how many would have."""
    return len(db.fetch(DISABLE_DJANGO_Q2, {"ids": list(ids)}))


def held(db: Database, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The rows of those of these schedules of ours that there are, by name."""
    rows = [read_json(text) for (text,) in db.fetch(HELD, {"names": list(names)})]
    return {row["name"]: row for row in rows}


def of_job_types(db: Database, job_types: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of our schedules of these job types that may fire again."""
    params = {"job_types": list(job_types)}
    return [read_json(text) for (text,) in db.fetch(OF_JOB_TYPES, params)]


def moment_of(text: str | None) -> datetime | None:
    """A moment as a row in JSON has it."""
    return None if text is None else timezones.aware(datetime.fromisoformat(text))
