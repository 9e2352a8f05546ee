"""Declare: the code's schedules → their rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from django_jobqueue.domain.schedules import ScheduleDeclaration
from django_jobqueue.store.connection import Database

# The columns that the code declares, and their types in JSON.
DECLARED: Final = {
    "job_type": "text",
    "rule": "text",
    "time_zone": "text",
    "data": "jsonb",
    "options": "jsonb",
    "missed": "text",
    "missed_within": "interval",
    "missed_most": "integer",
    "overlap": "text",
    "jitter": "interval",
    "starts_at": "timestamptz",
    "ends_at": "timestamptz",
}
COLUMNS: Final = ", ".join(DECLARED)
TYPED: Final = ", ".join(
    f"{name} {column_type}" for name, column_type in DECLARED.items()
)
_SET: Final = ", ".join(f"{name} = excluded.{name}" for name in DECLARED)
_HELD: Final = ", ".join(f"held.{name}" for name in DECLARED)
_EXCLUDED: Final = ", ".join(f"excluded.{name}" for name in DECLARED)

# Written only where something differs. What operators say instead is never touched, nor
# is a schedule of theirs. One that this code does not declare any more, though it has
# its job type, is gone; of other job types other projects may know.
DECLARE: Final = f"""
WITH gone AS (
  UPDATE jobqueue_schedule
     SET gone_at = clock_timestamp()
   WHERE origin = 'code' AND gone_at IS NULL
     AND job_type = ANY (%(job_types)s::text[]) AND name <> ALL (%(names)s::text[])
)
INSERT INTO jobqueue_schedule AS held (name, origin, declared_at, {COLUMNS})
SELECT name, 'code', clock_timestamp(), {COLUMNS}
  FROM jsonb_to_recordset(%(declared)s::jsonb) AS declared (name text, {TYPED})
 ORDER BY name
    ON CONFLICT (name) DO UPDATE
   SET {_SET}, declared_at = clock_timestamp(), gone_at = NULL,
       planned_for = CASE WHEN held.gone_at IS NULL THEN held.planned_for ELSE '' END
 WHERE held.origin = 'code'
   AND (held.gone_at IS NOT NULL OR ({_HELD}) IS DISTINCT FROM ({_EXCLUDED}))
"""


def declare(
    db: Database,
    declarations: Iterable[ScheduleDeclaration],
    job_types: Collection[str],
) -> None:
    """Write these schedules of the code to their rows. Those of these job types that
    are not among them are gone."""
    rows = [row_of(one) for one in declarations]
    params = {
        "declared": json.dumps(rows),
        "names": [row["name"] for row in rows],
        "job_types": list(job_types),
    }
    db.run(DECLARE, params)


def row_of(one: ScheduleDeclaration) -> dict[str, Any]:
    """Its columns, in JSON."""
    return {
        "name": one.name,
        "job_type": one.job_type,
        "rule": one.rule.text,
        "time_zone": one.time_zone,
        "data": one.data,
        "options": one.options,
        "missed": one.missed.missed.value,
        "missed_within": seconds_of(one.missed.within),
        "missed_most": one.missed.most,
        "overlap": one.overlap.value,
        "jitter": seconds_of(one.jitter) if one.jitter else None,
        "starts_at": text_of(one.starts_at),
        "ends_at": text_of(one.ends_at),
    }


def text_of(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def seconds_of(duration: timedelta) -> str:
    return f"{duration.total_seconds()} seconds"
