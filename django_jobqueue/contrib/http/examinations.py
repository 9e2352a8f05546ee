"""The checks of the HTTP API by ``jobqueue doctor``."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.urls import get_resolver

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http.token_rows import tokens
from django_jobqueue.stats.database_clock import database_now
from django_jobqueue.stats.findings import Finding, Findings, Level, note, ok, problem
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.text import numbers

NAME: Final = "jobqueue_http"  # of its addresses


def api_tokens() -> Findings:
    """Tokens that expire soon, and programs whose tokens have just expired."""
    db = DjangoDatabase()
    every, now = tokens(db), database_now(db)
    ending = [token for token in every if token.expires_soon(now)]
    ended = [token for token in every if token.expired_in_use(now)]
    advice = "Create another one, give it to its program, and revoke this one."
    for token in (*ended, *ending):
        left = (token.expires_at - now).total_seconds() if token.expires_at else 0
        if left > 0:
            text = f"Token {token.name} expires in {numbers.span(left)}."
            yield note("tokens", text, advice)
        else:
            text = f"Token {token.name} was in use, and expired {numbers.span(-left)} "
            yield problem("tokens", text + "ago: its program is refused.", advice)
    if not ending and not ended:
        yield ok("tokens", "No token expires soon.")


def http_transport() -> Findings:
    """Check that tokens cannot be read on the way."""
    try:
        is_mounted = _is_mounted()
    except Exception as error:  # the project's own code
        text = f"The addresses of this project cannot be loaded: {error!r}"
        yield problem("http-transport", text, "See manage.py check.")
        return
    if not is_mounted:
        yield ok("http-transport", "The HTTP API is not in this project's addresses.")
    elif conf.http_require_tls:
        yield ok("http-transport", "The HTTP API refuses requests without TLS.")
    else:
        yield Finding(
            "http-transport",
            Level.NOTE if settings.DEBUG else Level.PROBLEM,
            "The HTTP API takes tokens in the clear, since HTTP_REQUIRE_TLS is False.",
            "Remove it; behind a proxy that ends TLS set SECURE_PROXY_SSL_HEADER.",
        )


def _is_mounted() -> bool:
    if not getattr(settings, "ROOT_URLCONF", None):
        return False
    return NAME in get_resolver().app_dict
