"""Knows which database errors pass, and after which a transaction is to be tried
again."""

from __future__ import annotations

from typing import Final

import psycopg

CONFLICTS: Final = ("40001", "40P01")  # serialization failure, deadlock
CONTENDED: Final = (*CONFLICTS, "55P03")  # and a lock timeout: others stand in the way
NEEDS_MIGRATE: Final = (
    "42P01",  # unknown table
    "42703",  # unknown column
    "42883",  # unknown function
)
# Troubles that pass: nobody exits for one. Classes and codes are those of PostgreSQL's
# manual, appendix A.
_PASSING_CLASSES = ("08", "53", "57", "58")  # connection, resources, operator, system
_PASSING_CODES = (
    *CONFLICTS,
    *NEEDS_MIGRATE,
    "25006",  # read-only: a demoted server
    "25P03",  # idle in transaction for too long: the session is ended
    "25P04",  # a transaction that took too long: the session is ended
    "55P03",  # lock timeout
)
# What a row is or becomes: its values, constraints, what triggers raise, sizes.
_ROW_CLASSES = ("22", "23", "27", "44", "54", "P0")
# The connection is well after these.
ROLLED_BACK: Final = (*CONFLICTS, *NEEDS_MIGRATE, "55P03", "57014")


def in_a_line(error: BaseException) -> str:
    """The error, for the log: of the server's answer only the primary message,
    since DETAIL and CONTEXT quote rows."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((primary or str(error)).split())[:300]


def is_conflict(error: BaseException) -> bool:
    """True if another transaction came in between; from psycopg, or from Django."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    return getattr(cause, "sqlstate", None) in CONFLICTS


def is_contended(error: BaseException) -> bool:
    """True if others held a lock for too long, or came in between: the statement is
    rolled back, and the next one may well be done. From psycopg, or a
    StoreUnavailable."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    return getattr(cause, "sqlstate", None) in CONTENDED


def is_refusal(error: BaseException) -> bool:
    """True if the server answered that it did not do this: for good, or since others
    stood in the way. What it refused is not done, not even without an answer."""
    return isinstance(error, psycopg.Error) or is_contended(error)


def server_error(error: BaseException) -> psycopg.Error | None:
    """The error of psycopg that Django's comes from."""
    cause = error.__cause__
    return cause if isinstance(cause, psycopg.Error) else None


def is_of_a_row(error: psycopg.Error) -> bool:
    """True if some row of a statement is what was refused, for good: others may be
    well."""
    return (error.sqlstate or "").startswith(_ROW_CLASSES) and not is_passing(error)


def is_passing(error: psycopg.Error) -> bool:
    """True if this error may be gone at the next try."""
    code = error.sqlstate
    if code is None:  # the client's own: connection lost, refused, closed, timed out
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if error.diag.source_function == "RevalidateCachedQuery":
        return True  # a migration changed a column: prepared statements must be new
    if code == "54000" and error.diag.source_file == "async.c":
        return True  # the queue of notifications is full
    return code.startswith(_PASSING_CLASSES) or code in _PASSING_CODES
