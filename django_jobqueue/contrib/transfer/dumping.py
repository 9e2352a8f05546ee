"""Takes waiting jobs out of one database as JSON, and into another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.followers import job_types_of
from django_jobqueue.domain.per_key import hidden_key, is_of_secrets
from django_jobqueue.domain.states import Holds
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.bulk import filter_text
from django_jobqueue.operations.checks import (
    check,
    check_attempts,
    check_call,
    checked_moment,
    must_exist,
)
from django_jobqueue.search.selection import Selection
from django_jobqueue.store import find as store_find
from django_jobqueue.store.bulk.selected_ids import selected_ids
from django_jobqueue.store.columns import JOB_COLUMNS, copied_to
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.queue.insert_statement import insert_jobs
from django_jobqueue.text.json_reading import read_json
from django_jobqueue.text.redaction import mask_json, secrets_in

VERSION: Final = 1
SECRET: Final = [one.name for one in JOB_COLUMNS if one.holds is Holds.DATA]
DEFAULTS: Final = {
    one.name: one.default for one in JOB_COLUMNS if one.default is not None
}
MOMENTS: Final = ("run_after", "expires_at", "created_at")
NEEDS: Final = frozenset(
    ("id", "job_type", "queue", "priority", "data", "run_after")
    + ("created_at", "attempts", "crashes")
)

BATCH: Final = 500  # jobs of a statement
COLUMNS: Final = copied_to("dump")
NAMES: Final = ", ".join(COLUMNS)

# An attempt that goes on is made again by whoever takes the job over.
DUMP: Final = f"""
SELECT ARRAY (SELECT of_row.value::text
                FROM (SELECT to_json(named) FROM (SELECT {NAMES}) AS named)
                       AS one (row),
                     json_each(one.row) AS of_row),
       job.attempts - (job.status = 'running')::int,
       coalesce(type.sensitive, '[]')::text, coalesce(type.limit_rule, '{{}}')::text
  FROM (SELECT * FROM jobqueue_queuedjob WHERE id = ANY (%(ids)s::uuid[])) AS job
  LEFT JOIN LATERAL (SELECT sensitive, limit_rule FROM jobqueue_jobtype
                      WHERE name = job.job_type) AS type ON true
 ORDER BY id
"""
# One that was started before goes first again where the order of a key is strict.
LOAD: Final = insert_jobs(
    {**{name: name for name in COLUMNS}, "fence": "least(attempts, 1)"},
    rows="""\
  FROM jsonb_populate_recordset(NULL::jobqueue_queuedjob, %(jobs)s::jsonb) AS job
 WHERE NOT EXISTS (SELECT FROM jobqueue_archivedjob AS old WHERE old.id = job.id)""",
    then="ON CONFLICT DO NOTHING RETURNING id",
)

Line = dict[str, Any]


class NotLoaded(InvalidArguments):
    """Some of the jobs are there already."""


def dump(
    selection: Selection, *, secrets: bool = False, by: str = ""
) -> Iterator[Line]:
    """Each of these queued jobs as an object that ``load`` takes; running ones as if
    they waited, with their attempt given back.

    Unless ``secrets``, those are masked, and what was masked cannot be loaded.
    """
    if secrets:
        record("dump secrets", by, 1, {"filter": filter_text(selection)})
    for columns, sensitive, rule in _dumped(DjangoDatabase(), selection):
        line: Line = {"v": VERSION, **columns}
        yield line if secrets else _masked(line, sensitive, rule)


def _dumped(
    db: Database, selection: Selection
) -> Iterator[tuple[Line, list[str], Any]]:
    """The columns of the jobs, by id, and what their types say of secrets."""
    for ids in selected_ids(db, selection, most=BATCH):
        for texts, attempts, sensitive, rule in db.fetch(DUMP, {"ids": ids}):
            values = map(read_json, texts)
            columns = dict(zip(COLUMNS, values, strict=True))
            columns["attempts"] = max(0, attempts)
            yield columns, list(map(str, read_json(sensitive))), read_json(rule)


def _masked(line: Line, sensitive: list[str], rule: Any) -> Line:
    values = secrets_in(line["data"], sensitive)
    masked = {name: mask_json(line[name], sensitive, values) for name in SECRET}
    key = line["limit_key"]
    if key is not None and is_of_secrets(rule, sensitive):
        masked["limit_key"] = hidden_key(key)
    if all(line[name] == value for name, value in masked.items()):
        return line
    masked["unique_key"] = None  # a digest of what was masked: it would be guessed
    return {**line, **masked, "masked": True}


def checked_job(line: Mapping[str, Any]) -> Line:
    """The columns of the job that this object states, as an enqueue checks them. Raises
    InvalidArguments."""
    job = {name: value for name, value in line.items() if name not in ("v", "masked")}
    if line.get("v") != VERSION:
        raise InvalidArguments(f"'v' must be {VERSION}: this is not a line of a dump.")
    if line.get("masked"):
        raise InvalidArguments(
            "its secrets are masked: dump it with --secrets to load it."
        )
    if unknown := sorted(job.keys() - set(COLUMNS)):
        raise InvalidArguments(f"a job has no {', '.join(unknown)}.")
    if missing := sorted(NEEDS - {n for n, v in job.items() if v is not None}):
        raise InvalidArguments(f"{', '.join(missing)} must be given.")
    _check_types(job)
    check(priority=job["priority"], queue=job["queue"])
    check_attempts(job.get("max_attempts"))
    check_call(job["job_type"], job["data"])  # a claim bounds what it weighs
    return {**DEFAULTS, **{name: v for name, v in job.items() if v is not None}}


def _check_types(job: Line) -> None:
    try:
        job["id"] = str(UUID(job["id"]))
        moments = {n: datetime.fromisoformat(job[n]) for n in MOMENTS if job.get(n)}
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidArguments(f"{error}.") from None
    if any(moment.utcoffset() is None for moment in moments.values()):
        raise InvalidArguments("its times must have an offset.")
    for name, moment in moments.items():
        checked_moment(name, moment)
    for name in ("priority", "attempts", "crashes"):
        if not isinstance(job[name], int) or isinstance(job[name], bool):
            raise InvalidArguments(f"{name} must be a whole number.")
    if min(job["attempts"], job["crashes"]) < 0:
        raise InvalidArguments("attempts and crashes must not be negative.")
    if not isinstance(job["data"], dict):
        raise InvalidArguments("data must be an object.")


@sync_only()
def load(
    jobs: Iterable[Mapping[str, Any]], *, fail: bool = False, by: str = ""
) -> list[UUID]:
    """Insert these jobs, which ``checked_job`` returned, all of them or none; returns
    the ids of those that were inserted.

    Those whose id is there, queued or archived, or whose unique key another job has,
    are left out; if ``fail``, nothing is inserted then. Raises UnknownJobType,
    NotLoaded.
    """
    db, listed = DjangoDatabase(), [dict(job) for job in jobs]
    follow = {name for job in listed for name in job_types_of(job.get("followers"))}
    names = sorted({job["job_type"] for job in listed} | follow)
    must_exist(db, names, store_find.known_names(db))

    def insert() -> list[UUID]:
        loaded = _inserted(db, listed)
        if fail and (there := len(listed) - len(loaded)):
            raise NotLoaded(f"{there} of {len(listed)} jobs are there already.")
        record("load", by, len(loaded), {}, ids=loaded)
        return loaded

    return db.in_transaction(insert)


def _inserted(db: Database, jobs: Sequence[dict[str, Any]]) -> list[UUID]:
    """Insert these jobs as queued; returns the ids of those that were not there, nor
    another one with the same unique key."""
    ids: list[UUID] = []
    for start in range(0, len(jobs), BATCH):
        batch = json.dumps(jobs[start : start + BATCH])
        ids += [row[0] for row in db.fetch(LOAD, {"jobs": batch})]
    return ids
