"""Enqueue one job by its id, or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas
from django_jobqueue.contrib.http.access import caller_of, may_do, require, visible
from django_jobqueue.contrib.http.callers import Caller
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.job_objects import (
    facts_of,
    job_object,
    parse_job_id,
    unknown_job_type,
)
from django_jobqueue.contrib.http.option_bounds import check_bounds
from django_jobqueue.contrib.http.problems import Problem, problem_of
from django_jobqueue.contrib.http.schemas import job_id
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing import by_name
from django_jobqueue.enqueueing.options import may_move
from django_jobqueue.exceptions import AlreadyArchived, DuplicateJob, InvalidArguments
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.find import find
from django_jobqueue.store.queue.insert_unique import PRUNED
from django_jobqueue.store.rows import Job

Check = Callable[[Job | None], None]

PERMISSION = "jobqueue.enqueue_job"


@endpoint(
    "PUT",
    "/v1/jobs/{job_type}/{id}",
    scope=Scope.ENQUEUE,
    permission=PERMISSION,
    answers={202: schemas.Job},
    problems=(
        *("invalid_prefix", "invalid_uuid", "job_type_not_found"),
        *("job_already_archived", "duplicate_job"),
    ),
)
def enqueue_job(
    request: HttpRequest,
    job_type: schemas.PathName,
    id: schemas.PathId,
    body: schemas.NewJobWithId,
) -> HttpResponse:
    """Enqueue a job under an id of yours.

    Sent again, it answers with the job that is there, and ignores the body; so whoever
    got no answer may send it again. When the job is over, its id cannot be used again.
    """
    key = parse_job_id(id)
    if body.id is not None and parse_job_id(body.id) != key:
        raise Problem("invalid_parameter", "id: the path has another one.")
    caller = _let_in(request, job_type, [body])
    with transaction.atomic(using=conf.database):
        job = _enqueued(request, job_type, key, body)
    return answer(202, job_object(job, caller), partial=True)


@endpoint(
    "POST",
    "/v1/jobs/{job_type}",
    scope=Scope.ENQUEUE,
    permission=PERMISSION,
    answers={202: schemas.JobIds},
    problems=(
        *("invalid_prefix", "invalid_uuid", "job_type_not_found"),
        *("job_already_archived", "duplicate_job"),
    ),
)
def enqueue_jobs(
    request: HttpRequest, job_type: schemas.PathName, body: schemas.NewJobs
) -> HttpResponse:
    """Enqueue up to 1,000 jobs of one type, all or none.

    A job with an id of yours that is there already stays as it is; without an id the
    request must not be sent twice.
    """
    _let_in(request, job_type, body.jobs)
    with transaction.atomic(using=conf.database):
        ids = _enqueued_many(request, job_type, body.jobs)
    return answer(202, schemas.JobIds(ids=[job_id(id) for id in ids]))


def _let_in(
    request: HttpRequest, job_type: str, jobs: Sequence[schemas.NewJob]
) -> Caller:
    """The caller, who may enqueue in each of these queues. Raises Problem, and
    UnknownJobType."""
    caller = require(request, job_type=job_type)
    usual = _queue_of(job_type, caller)
    for queue in {job.queue or usual for job in jobs}:
        require(request, job_type=job_type, queue=queue)
    for place, job in enumerate(jobs):
        try:
            check_bounds(caller, job_type, job.options())
        except Problem as problem:
            raise _of_one(place, problem) if len(jobs) > 1 else problem from None
    return caller


def _queue_of(job_type: str, caller: Caller) -> str:
    declaration = registry.get(job_type)
    if declaration is not None:
        return declaration.policy.queue
    facts = facts_of(job_type)
    if facts is None:
        raise unknown_job_type(job_type, caller)
    return facts.queue


def _enqueued(
    request: HttpRequest, job_type: str, id: UUID | None, new: schemas.NewJob
) -> Job:
    """The job, new or there already, in a transaction of the caller's. Raises
    Problem."""
    options: dict[str, Any] = {**new.options(), "enqueued_by": caller_of(request).name}
    if id is not None:
        options["id"] = id
    with _open_to(request, job_type) as check:
        try:
            job = by_name.enqueue(job_type, new.data, **options)
        except InvalidArguments as error:
            raise _too_large(new, error) from error
        check(job)
    return job


@contextmanager
def _open_to(request: HttpRequest, job_type: str) -> Iterator[Check]:
    """Enqueue jobs of this type in a transaction, with this check of each job that may
    have been there before.

    Another job may have the same id or unique key, and may have got the new data. If
    the caller has nothing to do with it, nothing is done, and the Problem says no more.
    Whoever is bound to queues takes no job out of one.
    """

    def check(job: Job | None) -> None:
        if job is None or job.status == PRUNED:  # nobody can tell whose it was
            is_ours = not visible(caller_of(request))
        else:
            is_ours = job.job_type == job_type and may_do(request, job_type, job.queue)
        if not is_ours:
            detail = "Another job has this id or unique key."
            raise Problem("duplicate_job", detail) from None

    token = may_move.set(not caller_of(request).queues)
    try:
        yield check
    except DuplicateJob as error:
        check(error.job)
        raise
    except AlreadyArchived as error:
        check(find(DjangoDatabase(), error.id))
        raise
    finally:
        may_move.reset(token)


def _too_large(new: schemas.NewJob, error: InvalidArguments) -> Problem:
    """The problem of this error: data that are too large have an id of their own."""
    try:
        size = len(to_json(new.data, limit=conf.http_max_body).encode())
    except InvalidArguments:
        size = 0
    if size > conf.max_data_bytes:
        return Problem("entity_too_large", str(error))
    return problem_of(error)


def _enqueued_many(
    request: HttpRequest, job_type: str, jobs: list[schemas.NewJobOfMany]
) -> list[UUID]:
    first = jobs[0].options()
    if all(
        job.id is None and job.unique_key is None and job.options() == first
        for job in jobs
    ):
        calls, by = [job.data for job in jobs], caller_of(request).name
        with _open_to(request, job_type) as check:
            made = by_name.enqueue_many(job_type, calls, **first, enqueued_by=by)
            if visible(caller_of(request)):
                for id in {*made.replaced, *made.existing}:
                    check(find(DjangoDatabase(), id))
        return list(made)
    ids = []
    for place, job in enumerate(jobs):
        key = None if job.id is None else parse_job_id(job.id)
        try:
            enqueued = _enqueued(request, job_type, key, job)
        except Exception as error:
            raise _of_one(place, problem_of(error)) from error
        ids.append(enqueued.id)
    return ids


def _of_one(place: int, problem: Problem) -> Problem:
    detail = f"jobs[{place}]: {problem.detail}"
    return Problem(problem.id, detail, headers=problem.headers)
