"""Makes operations of the API out of functions: who may call them, and what they
answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel

from django_jobqueue.contrib.http.access import (
    VIEW,
    VIEW_ARCHIVED,
    VIEW_OPERATION,
    VIEW_QUEUE,
    VIEW_TYPE,
    WITH_BODY,
    Access,
)
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.verbs.declarations import On, Verb

Function = Callable[..., HttpResponse]
# The permission to see what a verb is about.
VIEWS: Final = {
    On.QUEUED_JOB: VIEW,
    On.ARCHIVED_JOB: VIEW_ARCHIVED,
    On.JOB_TYPE: VIEW_TYPE,
    On.QUEUE: VIEW_QUEUE,
    On.BULK_OPERATION: VIEW_OPERATION,
}

# Problems that any operation may answer with, besides its own.
GENERAL: Final = (
    *("missing_authentication", "invalid_token", "insecure_request", "forbidden"),
    *("incorrect_password", "csrf_failed", "invalid_parameter", "internal_error"),
    *("unavailable", "too_slow", "invalid_request", "too_many_requests"),
)
OF_BODIES: Final = (
    *("missing_parameter", "length_required"),
    *("entity_too_large", "unsupported_media_type"),
)

router = Router()


def endpoint(
    method: str,
    path: str,
    *,
    scope: Scope,
    permission: str | Sequence[str],
    answers: Mapping[int, type[BaseModel]],
    problems: Iterable[str] = (),
    headers: Iterable[Mapping[str, Any]] = (),
    tag: str = "jobs",
    also: str = "",
) -> Callable[[Function], Function]:
    """Register a function as an operation.

    ``permission`` is what users of the site need: all of several, also that to see
    what they change. ``problems`` are the ids of its own, and ``headers`` those that it
    reads, as OpenAPI describes them. ``also`` is its path in version 2 of the API.
    """
    permissions = [permission] if isinstance(permission, str) else list(permission)
    own = (*GENERAL, *(OF_BODIES if method in WITH_BODY else ()), *problems)

    def register(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        query = [
            name
            for name in parameters
            if name not in ("request", "body") and f"{{{name}}}" not in path
        ]
        for at, suffix in ((path, ""), (also, "_v2")):
            if not at:
                continue
            router.api_operation(
                [method],
                at,
                auth=Access(scope, permissions, query),
                response=dict(answers),
                by_alias=True,  # as ``answer`` writes them
                operation_id=function.__name__ + suffix,
                summary=_first_line(function),
                description=inspect.getdoc(function),
                tags=[tag],
                openapi_extra={
                    "parameters": list(headers),
                    "x-problems": sorted(own),
                    "x-scope": scope.value,
                },
            )(function)
        return function

    return register


def does(verb: Verb, path: str, **more: Any) -> Callable[[Function], Function]:
    """Register a function that does this verb: who may is declared with it."""
    permission = (f"jobqueue.{verb.right}", VIEWS[verb.on])
    return endpoint(
        "POST", path, scope=Scope(verb.scope), permission=permission, **more
    )


def answer(status: int, value: BaseModel, *, partial: bool = False) -> HttpResponse:
    """The answer with this body; ``partial`` leaves out what was not set."""
    text = value.model_dump_json(exclude_unset=partial, by_alias=True)
    return HttpResponse(text, status=status, content_type="application/json")


def _first_line(function: Callable[[HttpRequest], Any] | Function) -> str:
    return (inspect.getdoc(function) or "").partition("\n")[0].rstrip(".")
