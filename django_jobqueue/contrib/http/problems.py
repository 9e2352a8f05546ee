"""Errors of the HTTP API: each has an id, a status and a sentence (RFC 9457)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

import psycopg
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, UnreadablePostError

from django_jobqueue.exceptions import (
    AlreadyArchived,
    DeclaredInCode,
    DuplicateJob,
    InvalidArguments,
    JobChanged,
    JobNotFound,
    NotEditable,
    NotReplayable,
    StoreUnavailable,
    UnknownJobType,
)
from django_jobqueue.operations.chunked_work import TooManyActive
from django_jobqueue.search import SearchError
from django_jobqueue.search.selection import SelectionError

logger = logging.getLogger("django_jobqueue.contrib.http")

MEDIA_TYPE: Final = "application/problem+json"
TAG: Final = "tag:django-jobqueue,2026:"  # and the id: the type of a problem
RETRY_AFTER: Final = 5  # seconds

# The status and the title of each id.
PROBLEMS: Final[Mapping[str, tuple[int, str]]] = {
    "invalid_request": (400, "The body cannot be understood"),
    "missing_parameter": (400, "A parameter is missing"),
    "invalid_parameter": (400, "A parameter cannot have this value"),
    "invalid_prefix": (400, "The id of a job begins with job_"),
    "invalid_uuid": (400, "The id of a job ends in a UUID"),
    "invalid_cursor": (400, "This is no cursor of this list"),
    "not_remote": (400, "Remote workers cannot do jobs of this type"),
    "job_already_archived": (400, "The job is over, so its id cannot be used again"),
    "invalid_replay_attempt": (400, "The job cannot be replayed"),
    "missing_authentication": (401, "Credentials are missing"),
    "invalid_token": (401, "The token opens nothing"),
    "insecure_request": (403, "The request came without TLS"),
    "forbidden": (403, "The caller may not do this"),
    "incorrect_password": (403, "The password is wrong"),
    "csrf_failed": (403, "The CSRF token is missing or wrong"),
    "not_found": (404, "There is nothing at this address"),
    "job_not_found": (404, "There is no such job"),
    "job_type_not_found": (404, "There is no such job type"),
    "operation_not_found": (404, "There is no such bulk operation"),
    "worker_lost": (404, "There is no such living worker"),
    "method_not_allowed": (405, "This address has no such method"),
    "declared_in_code": (409, "The project's code declares this job type"),
    "duplicate_job": (409, "There is a job like this one"),
    "stale_fence": (409, "The worker does not hold this job any more"),
    "not_queued": (409, "The job does not wait"),
    "job_changed": (409, "The job was changed meanwhile"),
    "length_required": (411, "The length of the body is not stated"),
    "entity_too_large": (413, "The body is too large"),
    "unsupported_media_type": (415, "The body is not application/json"),
    "too_many_requests": (429, "The caller sends too many requests"),
    "too_many_operations": (429, "The caller has too many operations that go on"),
    "too_many_workers": (429, "The caller has too many living workers"),
    "too_many_job_types": (429, "The caller's token opens too many job types"),
    "internal_error": (500, "Something went wrong here"),
    "unavailable": (503, "The database cannot be used now"),
    "too_slow": (503, "The answer would take too long"),
}


class Problem(Exception):
    """An answer that says why there is no other. Your authorizers may raise it."""

    def __init__(
        self, id: str, detail: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        self.id = id
        self.status, self.title = PROBLEMS[id]
        self.detail = detail
        self.headers = dict(headers or {})
        super().__init__(detail)

    def response(self, request: HttpRequest) -> HttpResponse:
        """The problem document."""
        document = {
            "type": TAG + self.id,
            "id": self.id,
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": request.path,
        }
        return HttpResponse(
            json.dumps(document),
            status=self.status,
            content_type=MEDIA_TYPE,
            headers=self.headers,
        )


# Errors that say what is wrong in words for the caller.
_IDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (UnknownJobType, "job_type_not_found"),
    (JobNotFound, "job_not_found"),
    (AlreadyArchived, "job_already_archived"),
    (DuplicateJob, "duplicate_job"),
    (DeclaredInCode, "declared_in_code"),
    (NotReplayable, "invalid_replay_attempt"),
    (NotEditable, "not_queued"),
    (JobChanged, "job_changed"),
    (TooManyActive, "too_many_operations"),
    (InvalidArguments, "invalid_parameter"),
    (SearchError, "invalid_parameter"),
    (SelectionError, "invalid_parameter"),
)


def problem_of(error: Exception) -> Problem:
    """The problem that this error is to the caller."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, UnknownJobType):  # the caller may not know the near names
        error = UnknownJobType(error.name, follows=error.follows)
    for error_class, id in _IDS:
        if isinstance(error, error_class):
            return Problem(id, str(error))
    if isinstance(error, RequestDataTooBig):
        return Problem("entity_too_large", "The body is larger than is allowed.")
    if isinstance(error, SuspiciousOperation | UnreadablePostError):
        return Problem("invalid_request", "The request cannot be read.")
    return _problem_of_database(error) or _unexpected(error)


def _problem_of_database(error: Exception) -> Problem | None:
    """The problem of an outage, a time limit, or a value that no column takes."""
    retry = {"Retry-After": str(RETRY_AFTER)}
    if isinstance(error, DataError):
        return Problem("invalid_parameter", "A value cannot be stored.")
    if isinstance(error, StoreUnavailable):
        retry["Retry-After"] = str(max(1, round(error.retry_in)))
    elif not isinstance(error, OperationalError | InterfaceError):
        return None
    if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
        detail = "Narrow the list, by a job type or a time, say."
        return Problem("too_slow", detail)
    logger.warning("The HTTP API has no database: %s", type(error).__name__)
    return Problem("unavailable", "Send the request again later.", headers=retry)


def _unexpected(error: Exception) -> Problem:
    """The problem of an error of ours; the log has it under an id that the caller can
    name."""
    number = uuid4().hex[:12]
    logger.error("Error %s of the HTTP API", number, exc_info=error)
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    assert PROBLEMS["internal_error"][0] == status
    return Problem("internal_error", f"The log has it as error {number}.")


def is_problem(response: Any) -> bool:
    """True if this response is a problem document."""
    return bool(response.headers.get("Content-Type", "") == MEDIA_TYPE)
