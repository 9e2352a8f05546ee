"""Makes, reads and revokes tokens of the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django_jobqueue.contrib.http.token_scopes import Grant
from django_jobqueue.store.connection import Database
from django_jobqueue.text.json_reading import read_json

SOON: Final = timedelta(days=14)  # a token is to be replaced before it expires

_COLUMNS: Final = """id, name, digest, scopes::text, job_types::text, queues::text,
       created_at, created_by, expires_at, last_used_at, revoked_at,
       revoked_at IS NULL
         AND (expires_at IS NULL OR expires_at > statement_timestamp()),
       last_used_at IS NULL
         OR last_used_at < date_trunc('hour', statement_timestamp())"""

CREATE: Final = f"""
INSERT INTO jobqueue_http_token
       (name, digest, scopes, job_types, queues, created_by, expires_at)
VALUES (%(name)s, %(digest)s, %(scopes)s::jsonb, %(job_types)s::jsonb,
        %(queues)s::jsonb, %(by)s, %(expires_at)s)
    ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING
RETURNING {_COLUMNS}
"""
BY_ID: Final = f"SELECT {_COLUMNS} FROM jobqueue_http_token WHERE id = %(id)s"
BY_NAME: Final = f"""
SELECT {_COLUMNS} FROM jobqueue_http_token WHERE name = %(name)s AND revoked_at IS NULL
"""
ALL: Final = f"SELECT {_COLUMNS} FROM jobqueue_http_token ORDER BY id"
# A row that another request has locked was just used, so nobody waits for it.
USED: Final = """
UPDATE jobqueue_http_token SET last_used_at = date_trunc('hour', statement_timestamp())
 WHERE id = (SELECT id FROM jobqueue_http_token WHERE id = %(id)s
                FOR NO KEY UPDATE SKIP LOCKED)
"""
REVOKE: Final = """
UPDATE jobqueue_http_token SET revoked_at = statement_timestamp(), revoked_by = %(by)s
 WHERE name = ANY (%(names)s::text[]) AND revoked_at IS NULL
RETURNING name
"""

DROP: Final = """
DELETE FROM jobqueue_http_token
 WHERE id IN (SELECT id FROM jobqueue_http_token
               WHERE least(revoked_at, expires_at)
                     < clock_timestamp() - %(keep)s * interval '1 second'
               LIMIT %(batch)s
                 FOR UPDATE SKIP LOCKED)
RETURNING id
"""
BATCH: Final = 1_000


class TokenRow(NamedTuple):
    """A token as its row says."""

    id: int
    name: str
    digest: str
    grant: Grant
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    is_valid: bool  # neither revoked nor expired
    is_unused: bool  # not used within this hour

    @property
    def state(self) -> str:
        """``valid``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "valid" if self.is_valid else "expired"

    def expires_soon(self, now: datetime) -> bool:
        """True if it is time to replace it."""
        if self.expires_at is None or self.revoked_at is not None:
            return False
        return now < self.expires_at <= now + SOON

    def expired_in_use(self, now: datetime) -> bool:
        """True if a program used it until it expired lately, and is refused now."""
        if self.expires_at is None or self.revoked_at is not None:
            return False
        if self.last_used_at is None or self.last_used_at < self.expires_at - SOON:
            return False
        return now - SOON < self.expires_at <= now


def create(
    db: Database,
    name: str,
    digest: str,
    grant: Grant,
    *,
    expires_at: datetime | None,
    by: str,
) -> TokenRow | None:
    """Insert a token; None if there is one of this name."""
    params = {
        "name": name,
        "digest": digest,
        "scopes": json.dumps(sorted(grant.scopes)),
        "job_types": json.dumps(grant.job_types),
        "queues": json.dumps(grant.queues),
        "expires_at": expires_at,
        "by": by,
    }
    rows = db.fetch(CREATE, params)
    return _row(rows[0]) if rows else None


def by_id(db: Database, id: int) -> TokenRow | None:
    """The token with this id."""
    rows = db.fetch(BY_ID, {"id": id})
    return _row(rows[0]) if rows else None


def by_name(db: Database, name: str) -> TokenRow | None:
    """The token of this name that is not revoked."""
    rows = db.fetch(BY_NAME, {"name": name})
    return _row(rows[0]) if rows else None


def tokens(db: Database) -> list[TokenRow]:
    """All of them, the oldest first."""
    return [_row(row) for row in db.fetch(ALL)]


def mark_used(db: Database, id: int) -> None:
    """Store that it was used within this hour."""
    db.run(USED, {"id": id})


def revoke(db: Database, names: Sequence[str], *, by: str) -> list[str]:
    """Revoke the tokens of these names; return the names of those that were valid."""
    return [name for (name,) in db.fetch(REVOKE, {"names": list(names), "by": by})]


def _row(row: Sequence[Any]) -> TokenRow:
    grant = Grant(
        scopes=frozenset(_texts(row[3])),
        job_types=tuple(_texts(row[4])),
        queues=tuple(_texts(row[5])),
    )
    return TokenRow(row[0], row[1], row[2], grant, *row[6:])


def _texts(text: str) -> list[str]:
    return [str(value) for value in read_json(text)]


def drop(db: Database, keep: float) -> bool:
    """Delete a batch of those that were revoked, or expired, so many seconds ago; True
    if there may be more."""
    return len(db.fetch(DROP, {"keep": keep, "batch": BATCH})) == BATCH
