"""The door of the HTTP API: TLS, sizes, types, and problems for everything."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import reload
from typing import Any
from uuid import uuid4

import pytest
from django.db import DataError, OperationalError
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import clear_url_caches
from psycopg.errors import QueryCanceled

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import urls
from django_jobqueue.contrib.http.problems import PROBLEMS
from django_jobqueue.exceptions import StoreUnavailable
from tests.contrib.http.conftest import V1, Program, problem
from tests.docs.pages import pages

PUT = f"/jobs/tests.sample.add/job_{uuid4()}"
pytestmark = pytest.mark.django_db


def test_plain_http_is_refused_unless_it_is_allowed(billing: Program) -> None:
    answer: Any = billing.get(V1 + PUT)
    problem(answer, 403, "insecure_request")
    with override_settings(JOBQUEUE={"HTTP_REQUIRE_TLS": False}):
        assert billing.get(V1 + PUT).status_code == 404
    proxied = {"SECURE_PROXY_SSL_HEADER": ("HTTP_X_FORWARDED_PROTO", "https")}
    with override_settings(**proxied):
        passed = billing.get(V1 + PUT, headers={"X-Forwarded-Proto": "https"})
        assert passed.status_code == 404


class Unread:
    """A body that nobody may read."""

    def read(self, *args: Any) -> bytes:
        """Fail."""
        raise AssertionError("the body was read")

    readline = read


@pytest.mark.parametrize(
    ("environ", "status", "id"),
    [
        ({"CONTENT_LENGTH": "1100001"}, 413, "entity_too_large"),
        ({"CONTENT_LENGTH": "9" * 400}, 413, "entity_too_large"),
        ({"CONTENT_LENGTH": "-1"}, 400, "invalid_request"),
        ({"CONTENT_LENGTH": "ten"}, 400, "invalid_request"),
        ({"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}, 411, None),
        ({"HTTP_AUTHORIZATION": ""}, 401, "missing_authentication"),
        ({"HTTP_AUTHORIZATION": "Bearer jq_1_0123456789"}, 401, "invalid_token"),
    ],
)
def test_a_body_is_not_read_of_whom_it_may_not_come(
    billing: Program, environ: dict[str, str], status: int, id: str | None
) -> None:
    sent = {"CONTENT_LENGTH": "30", "wsgi.input": Unread(), **environ}
    answer: Any = billing.put(V1 + PUT, b"", "application/json", secure=True, **sent)
    problem(answer, status, id or "length_required")


def test_a_body_of_unknown_length_is_read_to_its_bound(billing: Program) -> None:
    """As under ASGI, where HTTP/2 states none."""
    data = b'{"data": {"a": "' + b"x" * conf.http_max_body + b'"}}'
    answer: Any = billing.put(V1 + PUT, data, secure=True, CONTENT_LENGTH="")
    assert answer.status_code in (400, 413)


@pytest.mark.parametrize(
    "content_type",
    ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    + ["application/json; charset=latin-1", "application/jsonp"],
)
def test_another_type_than_json_is_refused(billing: Program, content_type: str) -> None:
    sent = billing.send("PUT", PUT, {"data": {"a": 1}}, content_type=content_type)
    problem(sent, 415, "unsupported_media_type")


def test_other_methods_and_addresses_are_problems_too(billing: Program) -> None:
    for method in ("DELETE", "OPTIONS", "HEAD", "TRACE", "PATCH"):
        if (sent := billing.send(method, "/jobs")) and method != "HEAD":
            assert sent.status_code in (404, 405)
    sent = billing.send("DELETE", "/jobs/tests.sample.add")
    problem(sent, 405, "method_not_allowed")
    assert "POST" in sent["Allow"]
    for path in ("", "/", "/nothing", "/jobs/a/b/c/d", "/%00", "/jobs/a/../b"):
        problem(billing.send("GET", path), 404, "not_found")
    assert Client().get("/jobqueue/other").status_code == 404
    assert Client().get("/jobqueue/metrics").status_code == 403  # another's address


@pytest.mark.parametrize(
    ("error", "status", "id"),
    [
        (RuntimeError("secret data"), 500, "internal_error"),
        (OperationalError("secret host"), 503, "unavailable"),
        (StoreUnavailable("secret host", retry_in=7), 503, "unavailable"),
        (DataError("secret value"), 400, "invalid_parameter"),
    ],
)
def test_what_goes_wrong_inside_is_a_problem_that_tells_nothing(
    billing: Program,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    id: str,
) -> None:
    monkeypatch.setattr(operations, "get_job", raising(error))
    sent = billing.send("GET", f"/jobs/job_{uuid4()}")
    problem(sent, status, id)
    assert b"secret" not in sent.content
    assert ("Retry-After" in sent) == (id == "unavailable")


def test_a_statement_that_takes_too_long_says_what_to_do(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OperationalError("canceled")
    error.__cause__ = QueryCanceled()
    monkeypatch.setattr(operations, "get_job", raising(error))
    problem(billing.send("GET", f"/jobs/job_{uuid4()}"), 503, "too_slow")


def raising(error: Exception) -> Callable[..., Any]:
    """A function that raises this."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    return fail


def test_an_unknown_or_repeated_parameter_is_refused(billing: Program) -> None:
    path = f"/jobs/job_{uuid4()}"
    for query in ("?wiat=1", "?wait=1&wait=2", "?wait=x", "?wait=-1", "?wait=31"):
        problem(billing.send("GET", path + query), 400, "invalid_parameter")


def test_nobody_has_to_log_in_where_other_pages_need_it(billing: Program) -> None:
    middleware = [
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.auth.middleware.LoginRequiredMiddleware",
    ]
    billing.handler.enforce_csrf_checks = True
    with override_settings(MIDDLEWARE=middleware):
        assert billing.send("PUT", PUT, {"data": {"a": 1}}).status_code == 202
        problem(billing.send("GET", "/nothing"), 404, "not_found")


def test_without_the_extra_the_answer_is_the_line_of_pip(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ninja", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    try:
        (pattern,) = reload(urls).urlpatterns
        found = pattern.resolve("v1/jobs")
        assert found is not None
        answer: HttpResponse = found.func(None)
        assert answer.status_code == 501
        assert b'pip install "django-jobqueue[http]"' in answer.content
    finally:
        monkeypatch.undo()
        reload(urls)
        clear_url_caches()


def test_each_problem_is_described() -> None:
    text = pages()["docs/guides/http.md"]
    assert [id for id in PROBLEMS if f"`{id}`" not in text] == []
