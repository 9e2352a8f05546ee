"""Decisions about failure groups, by their fingerprints.

Each verb returns the fingerprints of the groups that it changed. Those of which there
is no group are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import several
from django_jobqueue.domain.policy import WHO_LENGTH
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import checked_moment
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.control import failure_groups
from django_jobqueue.text.sanitizing import storable

RELEASE_LENGTH: Final = 100
NOTE_LENGTH: Final = 5_000  # characters

Fingerprints = UUID | str | Iterable[UUID | str]


@sync_only()
def resolve(
    fingerprints: Fingerprints,
    *,
    in_release: str = "",
    seen: datetime | None = None,
    using: str | None = None,
    by: str = "",
) -> list[UUID]:
    """Resolve these groups: the next failure reopens them, as regressed.

    ``in_release`` names the release with the fix. Failures of the other releases that
    run at this moment then do not reopen the groups, so the old code may go on failing
    until it is replaced. Groups that regressed after ``seen`` stay as they are. Raises
    InvalidArguments.
    """
    seen = checked_moment("seen", seen)
    release = _text("in_release", in_release, RELEASE_LENGTH)
    changed = failure_groups.resolve(
        DjangoDatabase(using),
        _keys(fingerprints),
        release=release,
        seen=seen,
        by=by,
    )
    _record("resolve", by, changed, using, in_release=release)
    return changed


@sync_only()
def ignore(
    fingerprints: Fingerprints,
    *,
    until: datetime | None = None,
    seen: datetime | None = None,
    using: str | None = None,
    by: str = "",
) -> list[UUID]:
    """Ignore these groups, until a moment or forever: failures are counted, but not
    announced.

    Groups that regressed after ``seen`` are left as they are. Raises InvalidArguments.
    """
    until, seen = checked_moment("until", until), checked_moment("seen", seen)
    changed = failure_groups.ignore(
        DjangoDatabase(using), _keys(fingerprints), until=until, seen=seen, by=by
    )
    _record("ignore", by, changed, using, until=str(until or ""))
    return changed


@sync_only()
def reopen(
    fingerprints: Fingerprints, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Reopen these groups, which were resolved or ignored. Raises InvalidArguments."""
    changed = failure_groups.reopen(DjangoDatabase(using), _keys(fingerprints), by=by)
    _record("reopen", by, changed, using)
    return changed


@sync_only()
def assign(
    fingerprints: Fingerprints, assignee: str, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Assign these groups to any name; an empty one is nobody. Raises
    InvalidArguments."""
    name = _text("assignee", assignee, WHO_LENGTH)
    changed = failure_groups.assign(
        DjangoDatabase(using), _keys(fingerprints), assignee=name, by=by
    )
    _record("assign", by, changed, using, assignee=name)
    return changed


@sync_only()
def note(
    fingerprints: Fingerprints, text: str, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Add a note to these groups, above the older ones. Raises InvalidArguments."""
    written = _text("text", text, NOTE_LENGTH)
    if not written:
        raise InvalidArguments("A note needs a text.")
    changed = failure_groups.note(
        DjangoDatabase(using), _keys(fingerprints), text=written, by=by
    )
    _record("note", by, changed, using)
    return changed


def _keys(fingerprints: Fingerprints) -> list[UUID]:
    keys = []
    for value in several(fingerprints):
        try:
            keys.append(value if isinstance(value, UUID) else UUID(value))
        except (ValueError, AttributeError, TypeError):
            raise InvalidArguments(
                f"{value!r} is not a fingerprint; it must be a UUID."
            ) from None
    return keys


def _text(name: str, value: str, most: int) -> str:
    text = storable(value).strip()
    if len(text) > most:
        raise InvalidArguments(f"{name} must not be longer than {most:,} characters.")
    return text


def _record(
    verb: str, by: str, changed: list[UUID], using: str | None, **details: str
) -> None:
    named = sorted(str(fingerprint) for fingerprint in changed)
    record(
        f"{verb} failures",
        by,
        len(changed),
        {"fingerprints": named, **details},
        using=using,
    )
