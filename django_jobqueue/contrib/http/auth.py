"""Callers by a token, by name and secret, or as users of your site."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from django_jobqueue.contrib.http import token_rows
from django_jobqueue.contrib.http.callers import Caller
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.token_rows import TokenRow
from django_jobqueue.contrib.http.token_scopes import (
    TOKEN_NAME_LENGTH,
    is_right,
    parse_token,
)
from django_jobqueue.store.connection import DjangoDatabase

SAFE: Final = ("GET", "HEAD", "OPTIONS")


class TokenCaller(NamedTuple):
    """A program with a token."""

    name: str
    identity: str
    job_types: tuple[str, ...]
    queues: tuple[str, ...]
    scopes: frozenset[str]

    def may(self, scope: str, permission: str) -> bool:
        """The rights of the token."""
        return scope in self.scopes


class Tokens:
    """``Authorization: Bearer jq_7_…``."""

    challenge = "Bearer"

    def authenticate(self, request: HttpRequest) -> Caller | None:
        """The program with this token. Raises Problem for a wrong one; all wrong ones
        are answered alike."""
        given = _credentials(request, "bearer")
        if given is None:
            return None
        parsed = parse_token(given)
        db = DjangoDatabase()
        row = token_rows.by_id(db, parsed[0]) if parsed else None
        secret = parsed[1] if parsed else given
        right = is_right(secret, None if row is None else row.digest)
        if row is None or not right or not row.is_valid:
            raise Problem(
                "invalid_token",
                "There is no such token, or it was revoked, or has expired.",
                headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
            )
        return _caller(db, row)


class Basic:
    """The name of a token and its secret, or the whole token, as HTTP Basic."""

    challenge = 'Basic realm="jobqueue"'

    def authenticate(self, request: HttpRequest) -> Caller | None:
        """The program with this name and secret. Raises Problem."""
        given = _credentials(request, "basic")
        if given is None:
            return None
        name, password = _name_and_password(given)
        parsed = parse_token(password)
        secret = parsed[1] if parsed else password
        db = DjangoDatabase()
        row = token_rows.by_name(db, name[:TOKEN_NAME_LENGTH])
        right = is_right(secret, None if row is None else row.digest)
        if row is None or not right or not row.is_valid:
            raise Problem(
                "incorrect_password", "There is no valid token of this name and secret."
            )
        return _caller(db, row)


class DjangoUser:
    """The logged-in user of your site, with the permissions of the admin."""

    challenge = ""

    def authenticate(self, request: HttpRequest) -> Caller | None:
        """The user of the request. Raises Problem for a change that another site may
        have sent."""
        user: Any = getattr(request, "user", None)
        if user is None or not user.is_authenticated or not user.is_active:
            return None
        if request.method not in SAFE and not _came_from_this_site(request):
            raise Problem(
                "csrf_failed",
                "Send the cookie csrftoken, and its value as the header X-CSRFToken.",
            )
        return UserCaller(user)


class UserCaller:
    """A user of your site."""

    job_types = queues = ()

    def __init__(self, user: Any) -> None:
        self._user = user
        self.name = str(user.get_username())
        self.identity = str(user.pk)

    def may(self, scope: str, permission: str) -> bool:
        """The user's rights in the admin."""
        return bool(self._user.has_perm(permission))


def _credentials(request: HttpRequest, scheme: str) -> str | None:
    named, _space, given = request.headers.get("Authorization", "").partition(" ")
    return given.strip() if named.lower() == scheme else None


def _name_and_password(given: str) -> tuple[str, str]:
    """Raises Problem for what is no pair of them."""
    try:
        name, colon, password = (
            base64.b64decode(given, validate=True).decode().partition(":")
        )
    except (binascii.Error, ValueError):
        colon = ""
    if not colon or "\x00" in name:
        raise Problem("incorrect_password", "These are not HTTP Basic credentials.")
    return name, password


def _caller(db: DjangoDatabase, row: TokenRow) -> Caller:
    if row.is_unused:
        token_rows.mark_used(db, row.id)
    grant = row.grant
    return TokenCaller(
        name=f"token {row.name}",  # no user of the site is called so
        identity=str(row.id),  # the next token of this name may be somebody else's
        job_types=grant.job_types,
        queues=grant.queues,
        scopes=grant.scopes,
    )


def _came_from_this_site(request: HttpRequest) -> bool:
    """True if Django's protection would let the request pass, although the views of
    the API are exempt: with a token there is nothing to forge."""
    protection = CsrfViewMiddleware(_nothing)
    protection.process_request(request)
    request.csrf_processing_done = False  # type: ignore[attr-defined]
    return protection.process_view(request, _nothing, (), {}) is None


def _nothing(request: HttpRequest) -> HttpResponse:
    return HttpResponse()
