"""Takes waiting jobs out of one database as JSON, and into another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
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
from django_jobqueue.store.bulk import dumped_jobs
from django_jobqueue.store.bulk.dumped_jobs import COLUMNS, Dumped
from django_jobqueue.store.columns import JOB_COLUMNS
from django_jobqueue.store.connection import DjangoDatabase
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
    for job in dumped_jobs.dumped(DjangoDatabase(), selection):
        line: Line = {"v": VERSION, **job.columns}
        yield line if secrets else _masked(line, job)


def _masked(line: Line, job: Dumped) -> Line:
    sensitive = [str(name) for name in job.sensitive]
    values = secrets_in(line["data"], sensitive)
    masked = {name: mask_json(line[name], sensitive, values) for name in SECRET}
    key = line["limit_key"]
    if key is not None and is_of_secrets(job.limit_rule, sensitive):
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
    names = sorted({job["job_type"] for job in listed})
    must_exist(db, names, store_find.known_names(db))

    def insert() -> list[UUID]:
        loaded = dumped_jobs.load(db, listed)
        if fail and (there := len(listed) - len(loaded)):
            raise NotLoaded(f"{there} of {len(listed)} jobs are there already.")
        record("load", by, len(loaded), {}, ids=loaded)
        return loaded

    return db.in_transaction(insert)
