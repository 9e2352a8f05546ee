"""Makes a test's open transaction look like autocommit to a handler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus


class _Undo(Exception):
    """Rolls a savepoint back."""


def is_broken(connection: BaseDatabaseWrapper) -> bool:
    """True if its transaction takes no statement any more."""
    if connection.needs_rollback:
        return True
    if connection.connection is None or connection.vendor != "postgresql":
        return False
    status = connection.connection.info.transaction_status
    return status in (TransactionStatus.INERROR, TransactionStatus.UNKNOWN)


@contextmanager
def like_autocommit() -> Iterator[None]:
    """Keep the handler's writes, whether it fails or not.

    Unless an error of the database breaks the transaction: that costs what the handler
    wrote, but not the test its transaction.
    """
    with ExitStack() as stack:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                stack.enter_context(_undone_if_broken(connection))
        yield


@contextmanager
def _undone_if_broken(connection: BaseDatabaseWrapper) -> Iterator[None]:
    block = transaction.atomic(using=connection.alias)
    block._from_testcase = True  # type: ignore[attr-defined]  # a handler's may be durable
    with suppress(_Undo), block:
        yield
        if is_broken(connection):
            raise _Undo
