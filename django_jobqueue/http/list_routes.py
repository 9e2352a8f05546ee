"""Lists of jobs, page by page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from django.http import HttpRequest, HttpResponse
from ninja import Query
from pydantic import AfterValidator

from django_jobqueue.domain.api_tokens import Scope
from django_jobqueue.http import schemas
from django_jobqueue.http.access import VIEW, caller_of, may_read, require, sees_all
from django_jobqueue.http.callers import Caller
from django_jobqueue.http.cursors import Key, read_cursor, write_cursor
from django_jobqueue.http.endpoint import answer, endpoint
from django_jobqueue.http.job_objects import (
    job_object,
)
from django_jobqueue.http.problems import Problem
from django_jobqueue.http.strict_json import check_text
from django_jobqueue.search import parse
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.job_pages import job_page
from django_jobqueue.store.rows import Job
from django_jobqueue.text import timezones

MOST: Final = 100  # jobs of a page
MOST_TYPES: Final = 10_000
MOST_READ: Final = 5  # pages, for a caller who may not see all of their jobs
LONGEST: Final = 5_000  # milliseconds that a page may take

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
    permission="jobqueue.view_archivedjob",
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
    selection = _selection(request, Table.ARCHIVED, name, where, terms)
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
    selection = _selection(request, Table.QUEUED, name, where, terms)
    of = ("queued", name, status, where)
    return _page(request, selection, limit, cursor, of)


def selection_of(
    table: Table, where: str | None, terms: Iterable[Term] = ()
) -> Selection:
    """The selection of a search. Raises SearchError, Problem."""
    search = parse(where or "", table, timezones.now())
    ids = tuple(one.first for one in search.ids if one.is_exact and not one.ending)
    if len(ids) < len(search.ids):
        raise Problem("invalid_parameter", "where: write the whole id of a job.")
    by_id = [Term("id", ids)] if ids else []
    return Selection(table, (*terms, *search.terms, *by_id))


def _selection(
    request: HttpRequest,
    table: Table,
    name: str | None,
    where: str | None,
    terms: list[Term],
) -> Selection:
    if name is not None:
        require(request, job_type=name)
        terms = [*terms, Term("type", name)]
    return selection_of(table, where, terms)


def _page(
    request: HttpRequest,
    selection: Selection,
    limit: int,
    cursor: str | None,
    of: tuple[Any, ...],
) -> HttpResponse:
    caller, after = caller_of(request), read_cursor(cursor, of)
    jobs, last = _jobs(caller, selection, after, limit)
    shown = [job_object(job, caller) for job in jobs]
    following = None if last is None else write_cursor(last, of)
    return answer(200, schemas.Jobs(jobs=shown, cursor=following), partial=True)


def _jobs(
    caller: Caller, selection: Selection, after: Key | None, limit: int
) -> tuple[list[Job], Key | None]:
    """The jobs of a page that the caller may see, and the key after which the next
    page begins; None after the last one. Where the caller may not see all, a page may
    have fewer jobs."""
    jobs: list[Job] = []
    rounds = 1 if sees_all(caller) else MOST_READ
    db = DjangoDatabase()
    for _round in range(rounds):
        size = limit - len(jobs)
        page = job_page(db, selection, after=after, limit=size, milliseconds=LONGEST)
        if page is None:
            raise Problem("too_slow", "Narrow the list, by a job type or a time, say.")
        jobs += [job for job in page if may_read(caller, job.job_type, job.queue)]
        if len(page) < size:
            return jobs, None
        last = page[-1]
        after = (last.finished_at or last.created_at, last.id)
        if len(jobs) == limit:
            break
    return jobs, after
