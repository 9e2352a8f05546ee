"""Lets callers in: who they are, and whether they may do what they ask for."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, Final

from django.http import HttpRequest
from django.utils.module_loading import import_string

from django_jobqueue.conf import conf
from django_jobqueue.domain.api_tokens import Scope
from django_jobqueue.http.callers import Authorizer, Caller
from django_jobqueue.http.door import read_body
from django_jobqueue.http.problems import Problem
from django_jobqueue.http.throttle import check_rate

VIEW: Final = "jobqueue.view_queuedjob"
VIEW_DATA: Final = "jobqueue.view_job_data"
WITH_BODY: Final = ("POST", "PUT", "PATCH")
_CALLER: Final = "jobqueue_caller"  # attributes of a request
_ACCESS: Final = "jobqueue_access"


class Access:
    """Who may use an operation; ninja calls it before it reads parameters and body."""

    def __init__(self, scope: Scope, permission: str, query: Collection[str]) -> None:
        self.scope = scope
        self.permission = permission
        self.query = query

    def __call__(self, request: HttpRequest) -> Caller:
        """The caller. Raises Problem: for credentials, for too many requests, for a
        scope, for what the query string should not have, and for the body's length and
        type, in this order."""
        caller = authenticate(request)
        setattr(request, _CALLER, caller)
        setattr(request, _ACCESS, self)
        check_rate(caller)
        if not self.allows(caller):
            raise refused(self.scope)
        self._check_query(request)
        if request.method in WITH_BODY:
            check_type(request)
            read_body(request)
        return caller

    def allows(
        self, caller: Caller, *, job_type: str | None = None, queue: str | None = None
    ) -> bool:
        """Whether the caller may do it to these jobs."""
        return caller.may(
            self.scope, job_type=job_type, queue=queue, permission=self.permission
        )

    def _check_query(self, request: HttpRequest) -> None:
        for name, values in request.GET.lists():
            if name not in self.query:
                known = ", ".join(self.query) or "none"
                raise Problem(
                    "invalid_parameter",
                    f"There is no parameter {name[:100]!r} here, only: {known}.",
                )
            if len(values) > 1:
                raise Problem("invalid_parameter", f"{name} is given twice.")


def authenticate(request: HttpRequest) -> Caller:
    """The caller, by the first of HTTP_AUTH that knows the credentials. Raises
    Problem."""
    asked = authorizers(tuple(conf.http_auth))
    for authorizer in asked:
        caller = authorizer.authenticate(request)
        if caller is not None:
            return caller
    challenges = [one.challenge for one in asked if getattr(one, "challenge", "")]
    raise Problem(
        "missing_authentication",
        "The request has no credentials that this site accepts.",
        headers={"WWW-Authenticate": ", ".join(challenges) or "Bearer"},
    )


@cache
def authorizers(paths: tuple[str, ...]) -> tuple[Authorizer, ...]:
    """Those that these dotted paths name; classes are called. Raises ImportError."""
    named: list[Any] = [import_string(path) for path in paths]
    return tuple(one() if isinstance(one, type) else one for one in named)


def caller_of(request: HttpRequest) -> Caller:
    """The caller that was let in."""
    caller: Caller = getattr(request, _CALLER)
    return caller


def require(request: HttpRequest, *, job_type: str, queue: str | None = None) -> Caller:
    """The caller, who may do what the operation does to these jobs. Raises Problem."""
    caller = caller_of(request)
    access: Access = getattr(request, _ACCESS)
    if access.allows(caller, job_type=job_type, queue=queue):
        return caller
    of = f"job type {job_type!r}" + (f" in queue {queue!r}" if queue else "")
    raise refused(access.scope, of)


def may_do(
    request: HttpRequest, job_type: str, queue: str, *, permission: str = ""
) -> bool:
    """Whether the caller may do what the operation does to these jobs; ``*`` is every
    one. A ``permission`` is asked for instead of the operation's."""
    access: Access = getattr(request, _ACCESS)
    return caller_of(request).may(
        access.scope,
        job_type=job_type,
        queue=queue,
        permission=permission or access.permission,
    )


def require_all(request: HttpRequest) -> None:
    """Raises Problem for a caller who may not do it to the jobs of every type."""
    if not may_do(request, "*", "*"):
        access: Access = getattr(request, _ACCESS)
        raise refused(access.scope, "every job type and queue")


def sees_all(caller: Caller) -> bool:
    """Whether the caller may see the jobs of every type and queue."""
    return may_read(caller, "*", "*")


def may_read(caller: Caller, job_type: str, queue: str) -> bool:
    """Whether the caller may see this job."""
    return caller.may(Scope.READ, job_type=job_type, queue=queue, permission=VIEW)


def may_read_data(caller: Caller, job_type: str, queue: str) -> bool:
    """Whether the caller may see the data of this job, masked."""
    return caller.may(
        Scope.READ_DATA, job_type=job_type, queue=queue, permission=VIEW_DATA
    )


def refused(scope: str, of: str = "") -> Problem:
    """The problem of a caller who may not do this."""
    what = f" for {of}" if of else ""
    return Problem("forbidden", f"The caller has no scope {scope!r}{what}.")


def check_type(request: HttpRequest) -> None:
    """Raises Problem for a body that is not said to be JSON."""
    has_length = (request.META.get("CONTENT_LENGTH") or "0") != "0"
    if not request.content_type and not has_length:
        return
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    is_json = request.content_type == "application/json" and charset == "utf-8"
    if has_length and not is_json:
        raise Problem("unsupported_media_type", "Send application/json in UTF-8.")
