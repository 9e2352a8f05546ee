"""Tokens of the HTTP API: how they are made, and what each one allows."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.exceptions import InvalidArguments

TOKEN_NAME_LENGTH: Final = 100  # characters
SECRET_BYTES: Final = 32
MOST_PATTERNS: Final = 100

_TOKEN: Final = re.compile(r"jq_([1-9][0-9]{0,17})_([A-Za-z0-9_-]{10,100})", re.ASCII)
# Compared with where there is no such token, so that the time does not tell.
_NOBODY: Final = "0" * 64


class Scope(StrEnum):
    """The rights of a caller of the HTTP API."""

    ENQUEUE = "enqueue"
    READ = "read"
    READ_DATA = "read-data"
    OPERATE = "operate"
    WORK = "work"
    TYPES = "types"


# The permissions of the app that users need for all that a scope opens. Who lacks one
# makes no token with that scope: a token would do it for them.
_READ: Final = (
    *("view_archivedjob", "view_bulkoperation", "view_failuregroup", "view_jobtype"),
    *("view_overview", "view_queue", "view_queuedjob", "view_worker"),
)
RIGHTS: Final[Mapping[Scope, Sequence[str]]] = {
    Scope.ENQUEUE: ("enqueue_job",),
    Scope.READ: _READ,
    Scope.READ_DATA: (*_READ, "view_job_data"),
    Scope.OPERATE: (
        *("cancel_queuedjob", "edit_job_data", "pause_jobtype", "pause_queue"),
        *("prune_archivedjob", "release_queuedjob", "replay_archivedjob"),
        "reschedule_queuedjob",
        *("start_bulkoperation", "unbounded_bulkoperation", "view_archivedjob"),
        *("view_bulkoperation", "view_jobtype", "view_queue", "view_queuedjob"),
    ),
    Scope.WORK: ("work_remotely",),
    Scope.TYPES: ("change_jobtype", "view_jobtype"),
}


class Grant(NamedTuple):
    """The rights of a token: scopes, on job types and queues by pattern; no pattern is
    every one."""

    scopes: frozenset[str]
    job_types: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()


def checked_grant(
    scopes: Iterable[str], job_types: Iterable[str], queues: Iterable[str]
) -> Grant:
    """The grant, if it can be. Raises InvalidArguments."""
    named = frozenset(scopes)
    if unknown := sorted(named - {*Scope}):
        raise InvalidArguments(
            f"There is no scope {unknown[0]!r}; there are {', '.join(Scope)}."
        )
    if not named:
        raise InvalidArguments(f"A token needs a scope: {', '.join(Scope)}.")
    if Scope.READ_DATA in named:
        named |= {Scope.READ}
    return Grant(
        scopes=named,
        job_types=_patterns("job types", job_types),
        queues=_patterns("queues", queues),
    )


def patterns_of(text: str) -> list[str]:
    """The patterns, or scopes, of a text with commas."""
    return [part for one in text.split(",") if (part := one.strip())]


def check_token_name(name: object) -> str:
    """The same name. Raises InvalidArguments for what no token can be called; a colon
    ends the name in HTTP's Basic authentication."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidArguments(f"The name of a token must be a text, not {name!r}.")
    if len(name) > TOKEN_NAME_LENGTH or ":" in name:
        raise InvalidArguments(
            f"The name of a token has at most {TOKEN_NAME_LENGTH} characters and no "
            f"colon: {name[:20]!r}."
        )
    return name


def new_secret() -> str:
    """A secret that nobody can guess."""
    return secrets.token_urlsafe(SECRET_BYTES)


def token_text(id: int, secret: str) -> str:
    """The text that a program sends."""
    return f"jq_{id}_{secret}"


def parse_token(text: str) -> tuple[int, str] | None:
    """The id and the secret of a token; None if the text is none."""
    match = _TOKEN.fullmatch(text)
    return None if match is None else (int(match[1]), match[2])


def digest(secret: str) -> str:
    """The stored form of a secret, which is random: no salt, no slow hash is needed."""
    return sha256(secret.encode()).hexdigest()


def is_right(secret: str, stored: str | None) -> bool:
    """True if this is the secret with that digest; None is that of nobody."""
    equal = hmac.compare_digest(digest(secret), stored or _NOBODY)
    return equal and stored is not None


def _patterns(what: str, patterns: Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(patterns))
    if len(chosen) > MOST_PATTERNS:
        raise InvalidArguments(f"A token has at most {MOST_PATTERNS} patterns.")
    for pattern in chosen:
        if not pattern or not pattern.isprintable() or len(pattern) > NAME_LENGTH:
            raise InvalidArguments(
                f"{pattern!r} is not a pattern of {what}; write a name, or 'shop.*'."
            )
    return chosen
