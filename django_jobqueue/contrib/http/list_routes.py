"""Lists of jobs, page by page."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import AfterValidator

from django_jobqueue.contrib.http import schemas
from django_jobqueue.contrib.http.access import (
    VIEW,
    VIEW_ARCHIVED,
    caller_of,
    check_search,
    require,
    visible,
)
from django_jobqueue.contrib.http.cursors import read_cursor, write_cursor
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.job_objects import job_object
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.strict_json import check_text
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.search import parse
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.job_pages import job_page
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones

MOST: Final = 100  # jobs of a page
LONGEST: Final = 5_000  # milliseconds that a page may take in the database
LONGEST_SHOWN: Final = 1.0  # seconds from its first job to its last one, before it ends

Filter = Annotated[
    str | None,
    Query(None, max_length=1_000, description="A search, as in the admin."),
    AfterValidator(lambda text: text and check_text(text)),
]
TypeName = Annotated[
    str | None,
    Query(None, max_length=schemas.NAME_LENGTH, description="Of this job type."),
    AfterValidator(lambda text: text and check_text(text)),
]
Limit = Annotated[int, Query(MOST, ge=1, le=MOST, description="Jobs of a page.")]
Cursor = Annotated[
    str | None, Query(None, max_length=4_000, description="Of the answer before.")
]
PROBLEMS: Final = ("invalid_cursor", "job_type_not_found")


@endpoint(
    "GET",
    "/v1/archived-jobs",
    scope=Scope.READ,
    permission=VIEW_ARCHIVED,
    answers={200: schemas.Jobs},
    problems=PROBLEMS,
)
def list_archived_jobs(
    request: HttpRequest,
    name: TypeName,
    status: Annotated[
        Literal["succeeded", "failed", "expired", "cancelled"] | None, Query(None)
    ],
    where: Filter,
    limit: Limit,
    cursor: Cursor,
) -> HttpResponse:
    """List finished jobs, the last finished first."""
    terms = [Term("status", status)] if status else []
    terms += _of_type(request, name)
    selection = selection_of(request, Table.ARCHIVED, where, *terms)
    of = ("archived", name, status, where)
    return _page(request, selection, limit, cursor, of)


@endpoint(
    "GET",
    "/v1/queued-jobs",
    scope=Scope.READ,
    permission=VIEW,
    answers={200: schemas.Jobs},
    problems=PROBLEMS,
)
def list_queued_jobs(
    request: HttpRequest,
    name: TypeName,
    status: Annotated[Literal["queued", "in-progress"] | None, Query(None)],
    where: Filter,
    limit: Limit,
    cursor: Cursor,
) -> HttpResponse:
    """List jobs that wait or run, the newest id first."""
    column = {"in-progress": "running"}.get(status or "", status)
    terms = [Term("statuses", (column,))] if column else []
    terms += _of_type(request, name)
    selection = selection_of(request, Table.QUEUED, where, *terms)
    of = ("queued", name, status, where)
    return _page(request, selection, limit, cursor, of)


def _of_type(request: HttpRequest, name: str | None) -> list[Term]:
    """The condition of this job type, if one is named. Raises Problem."""
    if name is None:
        return []
    require(request, job_type=name)
    return [Term("type", name)]


def selection_of(
    request: HttpRequest, table: Table, where: str | None, *terms: Term
) -> Selection:
    """The jobs of a search that the caller has to do with. Raises SearchError,
    Problem."""
    search = parse(where or "", table, timezones.now())
    ids = tuple(one.first for one in search.ids if one.is_exact and not one.ending)
    if len(ids) < len(search.ids):
        raise Problem("invalid_parameter", "where: write the whole id of a job.")
    by_id = [Term("id", ids)] if ids else []
    caller = caller_of(request)
    selection = Selection(table, (*terms, *search.terms, *by_id, *visible(caller)))
    check_search(caller, selection)
    return selection


def _page(
    request: HttpRequest,
    selection: Selection,
    limit: int,
    cursor: str | None,
    of: tuple[Any, ...],
) -> HttpResponse:
    caller, after = caller_of(request), read_cursor(cursor, of, UUID)
    jobs = job_page(
        DjangoDatabase(), selection, after=after, limit=limit, milliseconds=LONGEST
    )
    if jobs is None:
        raise Problem("too_slow", "Narrow the list, by a job type or a time, say.")
    shown, began = [], time.monotonic()
    for job in jobs:
        shown.append(job_object(job, caller))
        if time.monotonic() - began > LONGEST_SHOWN:  # large data, of which others wait
            break
    is_last = len(shown) == len(jobs) < limit
    following = None if is_last else write_cursor(_key(jobs[len(shown) - 1]), of)
    return answer(200, schemas.Jobs(jobs=shown, cursor=following), partial=True)


def _key(job: Job) -> tuple[datetime, UUID]:
    return job.finished_at or job.created_at, job.id
