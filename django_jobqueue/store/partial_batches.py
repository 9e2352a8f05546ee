"""Applies a statement to many rows of which some may be refused or locked."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import psycopg

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.errors import is_contended

BRIEF: Final = 0.1  # seconds; the wait for a lock of each try after the first
SEARCH: Final = 2.0  # seconds of such waits, after which the search is given up

T = TypeVar("T")


class Leftover(NamedTuple, Generic[T]):
    """Items that were refused, and the error."""

    items: Sequence[T]
    error: psycopg.Error

    @property
    def is_locked(self) -> bool:
        """True if others stood in the way: they may be gone any moment."""
        return is_contended(self.error)


def apply_in_parts(
    db: OwnConnection,
    items: Sequence[T],
    do: Callable[[Sequence[T]], object],
    *,
    brief: bool = False,
) -> list[Leftover[T]]:
    """Do this with as many of the items as the database lets; return the others.

    A part that is refused is halved until those that are refused stand alone; so is one
    that waits for a lock, and only the first try waits for long, or none if ``brief``.
    Larger parts come first, so most are done soon. Where very many are locked the
    search ends after a while; what is left then may be more than one item.
    Raises StoreUnavailable for all other errors.
    """
    if not items:
        return []
    if brief:
        with db.patience(BRIEF):
            error = _try(do, items)
    else:
        error = _try(do, items)
    if error is None:
        return []
    if len(items) == 1:
        return [Leftover(items, error)]
    with db.patience(BRIEF):
        return list(_search(deque(halves(items)), do))


def _search(
    parts: deque[Sequence[T]], do: Callable[[Sequence[T]], object]
) -> Iterator[Leftover[T]]:
    waited, locked = 0.0, None
    while parts:
        part = parts.popleft()
        if locked is not None and waited > SEARCH:
            yield Leftover(part, locked)
            continue
        began = time.monotonic()
        error = _try(do, part)
        if error is None:
            continue
        if is_contended(error):
            locked = error
            waited += time.monotonic() - began
        if len(part) == 1:
            yield Leftover(part, error)
        else:
            parts += halves(part)


def _try(
    do: Callable[[Sequence[T]], object], items: Sequence[T]
) -> psycopg.Error | None:
    try:
        do(items)
    except psycopg.Error as error:
        return error
    except StoreUnavailable as error:
        if not is_contended(error) or not isinstance(error.__cause__, psycopg.Error):
            raise
        return error.__cause__
    return None


def halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The first and the second half of these."""
    middle = len(items) // 2
    return items[:middle], items[middle:]
