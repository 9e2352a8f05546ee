"""The API: ninja reads parameters and bodies, strictly, and writes the document."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.parser import Parser

import django_jobqueue
from django_jobqueue import rooms
from django_jobqueue.contrib.http import (
    enqueue_routes,
    job_routes,
    list_routes,
    operation_routes,
    queue_routes,
    replay_routes,
    type_routes,
    verb_routes,
)
from django_jobqueue.contrib.http.access import caller_of
from django_jobqueue.contrib.http.endpoint import router
from django_jobqueue.contrib.http.job_objects import unknown_job_type
from django_jobqueue.contrib.http.openapi import document
from django_jobqueue.contrib.http.problems import Problem, problem_of
from django_jobqueue.contrib.http.strict_json import parse
from django_jobqueue.exceptions import UnknownJobType

# Imported, so that their operations register.
ROUTES: Final = (
    enqueue_routes,
    job_routes,
    list_routes,
    operation_routes,
    queue_routes,
    replay_routes,
    type_routes,
    verb_routes,
    *rooms.offered("http_routes"),
)
DOCUMENT: Final = "/v1/openapi.json"
MOST_NAMED: Final = 10  # mistakes in the detail of a problem


class StrictParser(Parser):
    """Reads bodies of JSON, which must be objects."""

    def parse_body(self, request: HttpRequest) -> dict[str, Any]:
        """The body. Raises Problem, which ninja wraps."""
        try:
            value = parse(request.body)
        except ValueError as error:
            raise Problem("invalid_request", str(error)) from None
        if not isinstance(value, dict):
            raise Problem("invalid_request", "The body must be an object of JSON.")
        return value


class Api(NinjaAPI):
    """Answers every error with a problem document."""

    def on_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse:
        """The problem of this error."""
        cause = exc.__cause__
        if isinstance(exc, HttpError) and isinstance(cause, Exception):
            exc = cause  # what the parser raised
        if isinstance(exc, ValidationError):
            exc = _invalid(exc)
        if isinstance(exc, UnknownJobType):
            exc = unknown_job_type(exc.name, caller_of(request), follows=exc.follows)
        return problem_of(exc).response(request)

    def get_root_path(self, path_params: dict[str, Any]) -> str:
        """Where the API is mounted."""
        return reverse("jobqueue_http:openapi-json").removesuffix(DOCUMENT[1:])

    def get_openapi_schema(self, **options: Any) -> Any:
        """The document, with what ninja does not know of."""
        return document(super().get_openapi_schema(**options))


def _invalid(error: ValidationError) -> Problem:
    """The problem of values that a schema refuses."""
    parts, ids = [], set()
    for one in error.errors[:MOST_NAMED]:
        where, *path = map(str, one["loc"])
        name = ".".join(path[1:] if where == "body" else path) or "the body"
        ids.add(one["type"])
        parts.append(f"{name}: {_sentence(one)}")
    is_missing = ids == {"missing"}
    id = "missing_parameter" if is_missing else "invalid_parameter"
    return Problem(id, "; ".join(parts))


def _sentence(error: dict[str, Any]) -> str:
    text = str(error["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def build() -> Api:
    """The API with all operations; its addresses can be read once."""
    api = Api(
        title="Job queue",
        version=django_jobqueue.__version__,
        description="Enqueue and query jobs, and operate the job queue.",
        urls_namespace="jobqueue_http",
        openapi_url=DOCUMENT,
        docs_url=None,
        parser=StrictParser(),
    )
    api.add_router("", router)
    return api
