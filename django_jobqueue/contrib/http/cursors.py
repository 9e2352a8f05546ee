"""Cursors of lists: where the next page begins, signed, so that nobody makes one up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from django.core import signing

from django_jobqueue.contrib.http.problems import Problem

SALT: Final = "jobqueue.http.cursor"
Id = TypeVar("Id")


def write_cursor(key: tuple[datetime, UUID | str], of: tuple[Any, ...]) -> str:
    """The cursor after the job, or job type, with this key. ``of`` is the list and its
    filters: the cursor is for these alone."""
    at, id = key
    return signing.dumps([at.isoformat(), str(id), _text(of)], salt=SALT)


def read_cursor(
    text: str | None, of: tuple[Any, ...], to_id: Callable[[str], Id]
) -> tuple[datetime, Id] | None:
    """The key of a cursor; None for the first page. Raises Problem."""
    if not text:
        return None
    try:
        at, id, about = signing.loads(text, salt=SALT)
        if about == _text(of):
            return datetime.fromisoformat(at), to_id(id)
    except (signing.BadSignature, ValueError, TypeError):
        pass
    raise Problem(
        "invalid_cursor", "Take the cursor of an answer, and the same filters."
    )


def _text(of: tuple[Any, ...]) -> str:
    return repr(of)
