"""Operators' requests to hosts and their workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import connections, transaction

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.host_plans import HostPlan, changes_problem, plan_problem
from django_jobqueue.domain.ids import several
from django_jobqueue.domain.policy import UNSET, Unset
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import host_rows, worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.host_rows import HostFacts

VERBS: Final = ("drain", "resume", "restart", "stop")
_REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "drain": {"draining": True},
    "resume": {"draining": False},
}
Ids = UUID | str | Iterable[UUID | str]


@sync_only()
def ask_hosts(
    ids: Ids, what: str, *, using: str | None = None, by: str = ""
) -> list[UUID]:
    """Ask hosts to ``drain``, ``resume``, ``restart`` or ``stop``; returns those alive.

    A drained host claims nothing until it is resumed, even with workers that start
    later. A restarted one loads new code: another process first checks that it starts.
    If not, the host goes on and its row has the ``error``. Otherwise its jobs have
    ``GRACE`` to finish, and the program starts again under its process id. A stopped
    one ends with exit code 0. In a transaction, the request is sent at the commit.

    Raises InvalidArguments, also to restart a host that is embedded in another program.
    """
    if what not in VERBS:
        raise InvalidArguments(
            f"A host can be asked to drain, resume, restart or stop, not {what!r}."
        )
    db = DjangoDatabase(using)
    hosts = host_rows.living(db, _ids(ids))
    if what == "restart":
        _refuse_embedded(hosts, "restart that program to load new code")
    request = _REQUESTS.get(what, {})
    counted = "" if request else what
    asked = [host.id for host in hosts]
    if asked:
        ask = partial(host_rows.ask, db, asked, request=request, counted=counted)
        _at_commit(db, ask)
    _record(what, hosts, {}, by, using)
    return asked


@sync_only()
def scale_hosts(
    ids: Ids,
    *,
    processes: int | Unset = UNSET,
    threads: int | Unset = UNSET,
    async_slots: int | Unset = UNSET,
    queues: Sequence[str] | None | Unset = UNSET,
    using: str | None = None,
    by: str = "",
) -> list[UUID]:
    """Change the worker processes, slots or queues of hosts; returns those alive.

    Omitted values stay. With 0 processes a host is parked: it runs nothing until it is
    scaled again. A change of slots or queues replaces the worker processes one by one,
    each when its successor works; running jobs finish. It lasts until the host ends; a
    restart keeps it. ``queues=None`` is every queue. In a transaction, the request is
    sent at the commit.

    Raises InvalidArguments for values out of bounds, for a plan without slots, and for
    a host that is embedded in another program.
    """
    given = {
        "processes": processes,
        "threads": threads,
        "async_slots": async_slots,
        "queues": list(queues) if isinstance(queues, tuple | set) else queues,
    }
    changes = {name: value for name, value in given.items() if value is not UNSET}
    if not changes:
        raise InvalidArguments(
            "Give processes, threads, async_slots or queues to scale hosts."
        )
    if problem := changes_problem(changes):
        raise InvalidArguments(problem)
    db = DjangoDatabase(using)
    hosts = host_rows.living(db, _ids(ids))
    _refuse_embedded(hosts, "its settings say what it has")
    for host in hosts:
        if problem := plan_problem(_plan(host).changed(changes)):
            raise InvalidArguments(f"{host.name}: {problem}")
    asked = [host.id for host in hosts]
    if asked:
        _at_commit(db, partial(host_rows.ask, db, asked, request=changes))
    _record("scale", hosts, changes, by, using)
    return asked


def _plan(host: HostFacts) -> HostPlan:
    return HostPlan(
        processes=host.processes,
        threads=host.threads,
        async_slots=host.async_slots,
        queues=None if host.queues is None else tuple(host.queues),
    )


def _refuse_embedded(hosts: Iterable[HostFacts], hint: str) -> None:
    for host in hosts:
        if host.embedded:
            raise InvalidArguments(
                f"{host.name} is a worker embedded in another program; {hint}."
            )


def _at_commit(db: DjangoDatabase, ask: Callable[[], object]) -> None:
    """Ask at the end of the transaction that is open here: it would keep the rows of
    hosts and workers locked, and so their leases from being renewed."""
    if connections[db.alias].in_atomic_block:
        transaction.on_commit(ask, using=db.alias)
    else:
        ask()


def _record(
    verb: str,
    hosts: Sequence[HostFacts],
    changes: dict[str, Any],
    by: str,
    using: str | None,
) -> None:
    details = {"hosts": [host.name for host in hosts], **changes}
    record(f"{verb} hosts", by, len(hosts), details, using=using)


def _ids(ids: Ids) -> list[UUID]:
    """These ids of hosts, or this one. Raises InvalidArguments."""
    return [_id(id) for id in several(ids)]


def _id(id: UUID | str) -> UUID:
    if isinstance(id, UUID):
        return id
    try:
        return UUID(id)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidArguments(
            f"{id!r} is not the id of a host; it is a UUID."
        ) from error


@sync_only()
def ask_workers(
    ids: int | Iterable[int], what: str, *, using: str | None = None, by: str = ""
) -> list[int]:
    """Ask workers to ``drain``, ``resume``, ``stop`` or ``restart``; returns those
    alive.

    Drained workers claim nothing until they are resumed. Stopped and restarted ones
    finish their jobs and end; a restarted one has a successor at once. In a
    transaction, the request is sent at the commit.
    """
    if what not in ("drain", "resume", "stop", "restart"):
        raise InvalidArguments(
            f"A worker can be asked to drain, resume, stop or restart, not {what!r}."
        )
    asked = _ask_workers(using, ids, partial(worker_rows.ask, desired=what))
    record(f"{what} workers", by, len(asked), {"workers": asked}, using=using)
    return asked


@sync_only()
def request_stack_dumps(
    ids: int | Iterable[int], *, using: str | None = None, by: str = ""
) -> list[int]:
    """Request stack dumps of workers; returns those alive.

    Within about a second, or with their next heartbeat, they write the stacks of their
    jobs and threads to the column ``stack_dump`` of their rows: no values of variables,
    at most 64 KB, secrets masked. In a transaction, the request is sent at the commit.
    """
    asked = _ask_workers(using, ids, worker_rows.request_stack_dumps)
    record(
        "request stack dumps of workers",
        by,
        len(asked),
        {"workers": asked},
        using=using,
    )
    return asked


def _ask_workers(
    using: str | None,
    ids: int | Iterable[int],
    ask: Callable[[DjangoDatabase, list[int]], object],
) -> list[int]:
    db = DjangoDatabase(using)
    alive = worker_rows.alive(db, _numbers(ids))
    if alive:
        _at_commit(db, partial(ask, db, alive))
    return alive


def _numbers(ids: int | Iterable[int]) -> list[int]:
    """These ids of workers, or this one. Raises InvalidArguments."""
    numbers = list(several(ids))
    for id in numbers:
        if isinstance(id, bool) or not isinstance(id, int):
            raise InvalidArguments(f"{id!r} is not the id of a worker; it is a number.")
    return numbers
