"""Applies a statement to many rows of which some may be refused or locked."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import psycopg
from django.db import Error as DatabaseError

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.errors import (
    in_a_line,
    is_contended,
    is_of_a_row,
    server_error,
)

BRIEF: Final = 0.1  # seconds; the wait for a lock of each try after the first
SEARCH: Final = 2.0  # seconds of such waits, after which the search is given up

REFUSED: Final = "refused"  # the reason of those that are left out
# What would be checked at the commit, foreign keys of Django's for example, is checked
# by each statement.
IMMEDIATE: Final = "SET CONSTRAINTS ALL IMMEDIATE"

T = TypeVar("T")
Result = TypeVar("Result")
logger = logging.getLogger("django_jobqueue.database")


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
        return list(_search(deque(_halves(items)), do))


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
            parts += _halves(part)


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


def _halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]


def leaving_out_refused(
    db: DjangoDatabase, work: Callable[..., Result], name: str, *, shows_errors: bool
) -> Result:
    """Do this work in one transaction; where the database refuses a row, again, with
    ``in_parts``, which leaves out such rows. The log says why; unless
    ``shows_errors``, without what may have a value."""
    try:
        return db.in_transaction(work)
    except DatabaseError as error:
        if (cause := server_error(error)) is None or not is_of_a_row(cause):
            raise
        code = f"{type(cause).__name__} {cause.sqlstate}"
        text = in_a_line(cause) if shows_errors else code
        logger.warning("Rows that are refused are left out of %s: %s", name, text)

    def again() -> Result:
        db.run(IMMEDIATE)
        return work(in_parts=True)

    return db.in_transaction(again)


def apply_to_others(
    db: DjangoDatabase, items: Sequence[T], apply: Callable[[Sequence[T]], Result]
) -> tuple[list[Result], list[T]]:
    """Apply this to all items but those that are refused, in the caller's transaction;
    returns the results of the parts that it took, and the items that are left out."""
    try:
        return [db.in_transaction(lambda: apply(items))], []
    except DatabaseError as error:
        if (cause := server_error(error)) is None or not is_of_a_row(cause):
            raise
        if len(items) == 1:
            return [], list(items)
    results, refused, half = [], [], len(items) // 2
    for part in (items[:half], items[half:]):
        done, left_out = apply_to_others(db, part, apply)
        results += done
        refused += left_out
    return results, refused
