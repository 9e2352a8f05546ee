"""Declare: the code's schedules → their rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from django_jobqueue.domain.schedules import ScheduleDeclaration
from django_jobqueue.store.connection import Database
from django_jobqueue.store.declaring import Declaring, seconds_of

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

# What operators say instead is never touched, nor is a schedule of theirs.
DECLARING: Final = Declaring(
    "jobqueue_schedule",
    DECLARED,
    differs="held.origin = 'code' AND (held.gone_at IS NOT NULL OR {differ})",
    inserted={"origin": "'code'", "declared_at": "clock_timestamp()"},
    updated={
        "gone_at": "NULL",
        "planned_for": (
            "CASE WHEN held.gone_at IS NULL THEN held.planned_for ELSE '' END"
        ),
    },
)
COLUMNS: Final = DECLARING.columns
TYPED: Final = DECLARING.typed

# One that this code does not declare any more, though it has its job type, is gone; of
# other job types other projects may know.
GONE: Final = """
UPDATE jobqueue_schedule
   SET gone_at = clock_timestamp()
 WHERE origin = 'code' AND gone_at IS NULL
   AND job_type = ANY (%(job_types)s::text[]) AND name <> ALL (%(names)s::text[])
"""


def declare(
    db: Database,
    declarations: Iterable[ScheduleDeclaration],
    job_types: Collection[str],
) -> None:
    """Write these schedules of the code to their rows. Those of these job types that
    are not among them are gone."""
    declared = list(declarations)
    retire(db, [one.name for one in declared], job_types)
    write(db, declared)


def write(db: Database, declarations: Iterable[ScheduleDeclaration]) -> None:
    """Write these schedules of the code to their rows."""
    if rows := [row_of(one) for one in declarations]:
        DECLARING.write(db, json.dumps(rows))


def retire(db: Database, names: Sequence[str], job_types: Collection[str]) -> None:
    """Record that the code declares only these schedules of these job types."""
    db.run(GONE, {"names": list(names), "job_types": list(job_types)})


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
