"""Lets callers in: who they are, and whether they may do what they ask for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any, Final

from django.http import HttpRequest
from django.utils.module_loading import import_string

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http.callers import Authorizer, Caller
from django_jobqueue.contrib.http.door import read_body
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.throttle import check_rate, check_refused
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.domain.name_patterns import EVERY, fits
from django_jobqueue.search.hidden_values import SensitiveKeys, check_values
from django_jobqueue.search.selection import Selection, Term
from django_jobqueue.stats.sensitive_keys import sensitive_keys
from django_jobqueue.store.rows import Job

VIEW: Final = "jobqueue.view_queuedjob"
VIEW_ARCHIVED: Final = "jobqueue.view_archivedjob"
VIEW_TYPE: Final = "jobqueue.view_jobtype"
VIEW_QUEUE: Final = "jobqueue.view_queue"
VIEW_OPERATION: Final = "jobqueue.view_bulkoperation"
VIEW_DATA: Final = "jobqueue.view_job_data"
WITH_BODY: Final = ("POST", "PUT", "PATCH")
_CALLER: Final = "jobqueue_caller"  # attributes of a request
_ACCESS: Final = "jobqueue_access"


class Access:
    """The right to an operation; ninja calls it before reading parameters and body."""

    def __init__(
        self, scope: Scope, permissions: Sequence[str], query: Collection[str]
    ) -> None:
        self.scope = scope
        self.permissions = permissions
        self.query = query

    def __call__(self, request: HttpRequest) -> Caller:
        """The caller. Raises Problem: for credentials, for too many requests, for a
        scope, for what the query string should not have, and for the body's length and
        type, in this order."""
        caller = authenticate(request)
        setattr(request, _CALLER, caller)
        setattr(request, _ACCESS, self)
        check_rate(caller)
        if not may_do(request, None, None):
            raise Problem("forbidden", f"The caller has no scope '{self.scope}'.")
        self._check_query(request)
        if request.method in WITH_BODY:
            check_type(request)
            read_body(request)
        return caller

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
        try:
            caller = authorizer.authenticate(request)
        except Problem:
            check_refused(request.META.get("REMOTE_ADDR", ""))
            raise
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


def may(
    caller: Caller,
    scope: Scope,
    permission: str,
    *,
    job_type: str | None = None,
    queue: str | None = None,
) -> bool:
    """True if the caller may do this to jobs of this type and queue.

    None is some job type or queue, and ``*`` is every one. Every answer that depends
    on who asks comes from here, and for lists from ``visible``.
    """
    return (
        caller.may(scope, permission)
        and fits(job_type, caller.job_types)
        and fits(queue, caller.queues)
    )


def require(request: HttpRequest, *, job_type: str, queue: str | None = None) -> Caller:
    """The caller, who may do what the operation does to these jobs. Raises Problem."""
    if may_do(request, job_type, queue):
        return caller_of(request)
    of = f"job type {job_type!r}" + (f" in queue {queue!r}" if queue else "")
    raise refused(request, of)


def require_each(
    request: HttpRequest, job_types: Sequence[str], queues: Sequence[str]
) -> None:
    """Raises Problem unless the caller may do it to the jobs of all these types in all
    these queues. Types and queues are asked for apart, as ``may`` looks at them: each
    once, and not each pair of up to a thousand of both."""
    for job_type in job_types:
        require(request, job_type=job_type)
    for queue in queues:
        require(request, job_type=job_types[0], queue=queue)


def may_do(
    request: HttpRequest,
    job_type: str | None,
    queue: str | None,
    *,
    permission: str = "",
) -> bool:
    """True if the caller may do what the operation does to these jobs. A ``permission``
    is asked for instead of the operation's."""
    access: Access = getattr(request, _ACCESS)
    caller = caller_of(request)
    return all(
        may(caller, access.scope, one, job_type=job_type, queue=queue)
        for one in ([permission] if permission else access.permissions)
    )


def require_all(request: HttpRequest) -> None:
    """Raises Problem for a caller who may not do it to the jobs of every type."""
    if not may_do(request, EVERY, EVERY):
        raise refused(request, "every job type and queue")


def visible(caller: Caller) -> list[Term]:
    """The conditions that jobs meet which the caller has to do with: a list must not
    read others, or its cursor and its end tell of them."""
    both = {"types": caller.job_types, "queues": caller.queues}
    return [Term(name, tuple(names)) for name, names in both.items() if names]


def may_read(caller: Caller, job: Job) -> bool:
    """True if the caller may see this job."""
    permission = VIEW_ARCHIVED if job.is_over else VIEW
    return may(caller, Scope.READ, permission, job_type=job.job_type, queue=job.queue)


def may_read_data(
    caller: Caller, *, job_type: str | None = None, queue: str | None = None
) -> bool:
    """True if the caller may see the data of these jobs, masked."""
    return may(caller, Scope.READ_DATA, VIEW_DATA, job_type=job_type, queue=queue)


def may_know(caller: Caller, job_type: str) -> bool:
    """True if the caller has to do with jobs of this type, in whatever way."""
    return any(may(caller, scope, VIEW, job_type=job_type) for scope in Scope)


def sensitive_of(caller: Caller, selection: Selection) -> SensitiveKeys:
    """Tells the sensitive keys of these job types, or else of all that the caller has
    to do with."""
    types = selection.values("type")
    return lambda: sensitive_keys(types, fits=lambda name: fits(name, caller.job_types))


def check_search(caller: Caller, selection: Selection) -> None:
    """Raises SearchError for a search in what the API does not show this caller."""
    sees_data = may_read_data(caller)
    check_values(
        selection,
        sees_data=sees_data,
        sees_messages=sees_data,
        reveals=False,  # nobody sees secrets here
        sensitive=sensitive_of(caller, selection),
    )


def refused(request: HttpRequest, of: str) -> Problem:
    """The problem of a caller who may not do what the operation does to these jobs."""
    access: Access = getattr(request, _ACCESS)
    return Problem("forbidden", f"The caller has no scope '{access.scope}' for {of}.")


def check_type(request: HttpRequest) -> None:
    """Raises Problem for a body that is not said to be JSON."""
    has_length = (request.META.get("CONTENT_LENGTH") or "0") != "0"
    if not request.content_type and not has_length:
        return
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    is_json = request.content_type == "application/json" and charset == "utf-8"
    if has_length and not is_json:
        raise Problem("unsupported_media_type", "Send application/json in UTF-8.")
