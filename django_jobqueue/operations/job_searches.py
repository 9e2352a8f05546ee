"""Searches through all jobs that workers carry on: start, stop, read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import as_id, new_id
from django_jobqueue.domain.states import SearchState
from django_jobqueue.enqueueing.by_name import enqueue
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.bulk import COUNTING_PRIORITY
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk.operation_rows import JOB_TYPE
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.searching import search_rows
from django_jobqueue.store.searching.search_chunk import Done, chunk
from django_jobqueue.store.searching.search_rows import Search

Id = UUID | str
MOST_ACTIVE: Final = 3  # of one person


@sync_only()
def start(query: str, selections: Mapping[Table, Selection], *, by: str = "") -> UUID:
    """Let a worker search these tables for what the ``query`` selects, whose text is
    kept with the result; returns the id. Raises InvalidArguments."""
    if not selections or any(one.nothing for one in selections.values()):
        raise InvalidArguments("This selects no jobs.")
    by, db, job = by, DjangoDatabase(), new_id()
    if search_rows.number_active(db, by) >= MOST_ACTIVE:
        raise InvalidArguments(f"At most {MOST_ACTIVE} searches of one person go on.")

    def begin() -> UUID:
        id = search_rows.insert(db, query=query, selections=selections, by=by, job=job)
        enqueue_job(id, job, priority=COUNTING_PRIORITY)  # somebody waits
        record("start search", by, 1, {"search": str(id)})  # values are not repeated
        return id

    return db.in_transaction(begin)


@sync_only()
def stop(id: Id, *, by: str = "") -> bool:
    """End it after the chunk at hand; what it found stays."""
    stopped = search_rows.end(DjangoDatabase(), as_id(id), SearchState.STOPPED)
    if stopped:
        record("stop search", by, 1, {"search": str(as_id(id))})
    return stopped


@sync_only()
def get(id: Id) -> Search:
    """The search with this id. Raises LookupError, InvalidArguments."""
    search = search_rows.read(DjangoDatabase(), as_id(id))
    if search is None:
        raise LookupError(f"There is no search {id}.")
    return search


def step(id: UUID, *, max_rows: int, job: UUID | None = None) -> Done | None:
    """Do one chunk, in a transaction of its own; None if the search does not go on, or
    another job than this one carries it on."""
    db = DjangoDatabase()

    def work() -> Done | None:
        search = search_rows.lock(db, id)
        if search is None or search.state not in search_rows.ACTIVE:
            return None
        if job is not None and search.job_id != job:
            return None
        return chunk(db, search, max_rows=max_rows)

    return db.in_transaction(work)


def enqueue_job(search: UUID, job: UUID, **when: Any) -> None:
    """Enqueue the job that carries a search on."""
    enqueue(JOB_TYPE, {"search": str(search)}, id=job, **when)
