"""The door: what each request meets before, and each answer after the API itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required
from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http.problems import Problem, is_problem, problem_of

View = Callable[..., HttpResponse]

HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def door(view: View) -> View:
    """A view that refuses insecure and oversized requests before it reads them, and
    answers every error with a problem document."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            _check_transport(request)
            _check_length(request)
            response = _as_problem(view(request, *args, **kwargs), request)
        except Exception as error:
            response = problem_of(error).response(request)
        for name, value in HEADERS.items():
            response[name] = value
        return response

    opened = csrf_exempt(login_not_required(answer))
    # ATOMIC_REQUESTS would answer an outage of the database with an error page.
    for alias in connections:
        transaction.non_atomic_requests(using=alias)(opened)
    return opened


def read_body(request: HttpRequest) -> bytes:
    """The body, of which no more is read than is allowed. Raises Problem.

    Whoever may not send the request is refused before: see ``access``.
    """
    body: bytes = request.read(conf.http_max_body + 1)
    if len(body) > conf.http_max_body:
        raise _too_large()
    request._body = body  # where Django looks for it
    return body


def nothing_here(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    """The answer at an address that the API does not have."""
    raise Problem("not_found", f"The API has no {request.path}.")


def _check_transport(request: HttpRequest) -> None:
    if conf.http_require_tls and not request.is_secure():
        raise Problem(
            "insecure_request",
            "Use https. Behind a proxy that ends TLS the site needs Django's setting "
            "SECURE_PROXY_SSL_HEADER; for development set JOBQUEUE['HTTP_REQUIRE_TLS'] "
            "to False.",
        )


def _check_length(request: HttpRequest) -> None:
    text = request.META.get("CONTENT_LENGTH") or ""
    if not text:
        if request.META.get("HTTP_TRANSFER_ENCODING"):
            raise Problem("length_required", "Send Content-Length.")
        return
    if not (text.isascii() and text.isdigit()):
        raise Problem("invalid_request", "Content-Length is not a number.")
    if len(text) > 18 or int(text) > conf.http_max_body:
        raise _too_large()


def _too_large() -> Problem:
    most = conf.http_max_body
    return Problem("entity_too_large", f"A body has at most {most:,} bytes.")


def _as_problem(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """The response, or the problem instead of an error in plain text."""
    if response.status_code < HTTPStatus.BAD_REQUEST or is_problem(response):
        return response
    if response.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = response.headers.get("Allow", "")
        detail = f"There is no {request.method} here, only {allowed}."
        raise Problem("method_not_allowed", detail, headers={"Allow": allowed})
    if response.status_code == HTTPStatus.NOT_FOUND:
        raise Problem("not_found", f"The API has no {request.path}.")
    raise RuntimeError(f"The API answered {response.status_code} in plain text.")
