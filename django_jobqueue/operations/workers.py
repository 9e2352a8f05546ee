"""What workers are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.db import connections, transaction

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import several
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase


@sync_only()
def ask_workers(
    ids: int | Iterable[int], what: str, *, using: str | None = None, by: str = ""
) -> list[int]:
    """Ask workers to ``drain``, ``resume``, ``stop`` or ``restart``; returns those
    alive.

    Drained workers claim nothing until they are resumed. Stopped and restarted ones
    finish what runs and end; a restarted one has a successor at once. In a transaction
    they are asked when it is committed.
    """
    if what not in ("drain", "resume", "stop", "restart"):
        raise InvalidArguments(
            f"A worker can be asked to drain, resume, stop or restart, not {what!r}."
        )
    asked = _ask(
        DjangoDatabase(using), _numbers(ids), partial(worker_rows.ask, desired=what)
    )
    record(f"{what} workers", by, len(asked), {"workers": asked}, using=using)
    return asked


@sync_only()
def request_stack_dumps(
    ids: int | Iterable[int], *, using: str | None = None, by: str = ""
) -> list[int]:
    """Request stack dumps of workers; returns those alive.

    Within about a second, or with their next heartbeat, they write the stacks of their
    jobs and threads to the column ``stack_dump`` of their rows: no values of variables,
    no more than 64 KB, secrets masked. In a transaction they are asked when it is
    committed.
    """
    asked = _ask(DjangoDatabase(using), _numbers(ids), worker_rows.request_stack_dumps)
    record(
        "request stack dumps of workers",
        by,
        len(asked),
        {"workers": asked},
        using=using,
    )
    return asked


def _ask(
    db: DjangoDatabase, ids: list[int], ask: Callable[[DjangoDatabase, list[int]], Any]
) -> list[int]:
    """Ask these workers, at the end of the transaction that is open here: it would keep
    their rows locked, and so their leases from being renewed."""
    if not connections[db.alias].in_atomic_block:
        asked: list[int] = ask(db, ids)
        return asked
    alive = worker_rows.alive(db, ids)
    if alive:
        transaction.on_commit(partial(ask, db, alive), using=db.alias)
    return alive


def _numbers(ids: int | Iterable[int]) -> list[int]:
    """These ids of workers, or this one. Raises InvalidArguments."""
    numbers = list(several(ids))
    for id in numbers:
        if isinstance(id, bool) or not isinstance(id, int):
            raise InvalidArguments(f"{id!r} is no id of a worker; it is a number.")
    return numbers
