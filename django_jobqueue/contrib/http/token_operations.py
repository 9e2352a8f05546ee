"""Create and revoke tokens of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from django_jobqueue.contrib.http import token_rows
from django_jobqueue.contrib.http.token_rows import TokenRow
from django_jobqueue.contrib.http.token_scopes import (
    check_token_name,
    checked_grant,
    digest,
    new_secret,
    token_text,
)
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import several
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import checked_moment
from django_jobqueue.store import job_types as store_job_types
from django_jobqueue.store.connection import DjangoDatabase


class NewToken(NamedTuple):
    """A token, and the text that a program sends: nobody can read it again."""

    row: TokenRow
    text: str


@sync_only()
def create_token(
    name: str,
    scopes: str | Iterable[str],
    *,
    job_types: str | Iterable[str] = (),
    queues: str | Iterable[str] = (),
    expires_at: datetime | None = None,
    using: str | None = None,
    by: str = "",
) -> NewToken:
    """Make a token of the HTTP API. ``scopes`` are ``enqueue``, ``read``,
    ``read-data`` and ``operate``.

    ``job_types`` and ``queues`` are names, or patterns such as ``shop.*``; empty lists
    allow all. Raises InvalidArguments, also if a valid token has this name.
    """
    check_token_name(name)
    grant = checked_grant(several(scopes), several(job_types), several(queues))
    expires_at = checked_moment("expires_at", expires_at)
    db = DjangoDatabase(using)
    if expires_at is not None and expires_at <= store_job_types.clock_time(db):
        raise InvalidArguments(f"expires_at must be in the future, not {expires_at}.")
    secret = new_secret()
    row = token_rows.create(
        db, name, digest(secret), grant, expires_at=expires_at, by=by
    )
    if row is None:
        raise InvalidArguments(
            f"There is a token {name!r} already. Revoke it, or use another name."
        )
    details = {"token": name, "scopes": sorted(grant.scopes)}
    record("create token", by, 1, details, using=using)
    return NewToken(row, token_text(row.id, secret))


@sync_only()
def revoke_tokens(
    names: str | Iterable[str], *, using: str | None = None, by: str = ""
) -> list[str]:
    """Revoke the tokens of these names, from the next request on; returns the names of
    those that were not revoked before."""
    wanted = list(dict.fromkeys(several(names)))
    revoked = token_rows.revoke(DjangoDatabase(using), wanted, by=by)
    record("revoke tokens", by, len(revoked), {"tokens": revoked}, using=using)
    return revoked
