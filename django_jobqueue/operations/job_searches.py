"""Searches through all jobs that workers carry on: start, stop, read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import new_id
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.searching import search_chunk, search_rows
from django_jobqueue.store.searching.search_rows import SEARCHES, Search
from django_jobqueue.store.work_rows import ACTIVE, Chunk

MOST_ACTIVE: Final = 3  # of one person
# Rows of a chunk, which are only read. What is kept of them fits into work_mem.
LARGEST: Final = 50_000


class SearchWork(ChunkedWork[Search]):
    """Searches: what was typed is in no error and in no record."""

    table = SEARCHES
    noun = "search"
    plural = "searches"
    most_active = MOST_ACTIVE
    argument = "search"
    largest = LARGEST
    is_watched = True
    shows_errors = False
    resumable = ()
    stoppable = ACTIVE

    def chunk(
        self,
        db: DjangoDatabase,
        row: Search,
        *,
        max_rows: int,
        most: int | None,
        **more: Any,
    ) -> Chunk:
        """Examine the next jobs."""
        return search_chunk.chunk(db, row, max_rows=max_rows)

    def record(self, verb: str, row: Search, by: str, count: int) -> None:
        """By its id."""
        record(f"{verb} search", by, count, {"search": str(row.id)})


WORK: Final = SearchWork()
get, resume, stop = WORK.get, WORK.resume, WORK.stop


@sync_only()
def start(query: str, selections: Mapping[Table, Selection], *, by: str = "") -> UUID:
    """Let a worker search these tables for what the ``query`` selects, whose text is
    kept with the result; returns the id. Raises InvalidArguments."""
    if not selections or any(one.nothing for one in selections.values()):
        raise InvalidArguments("This selects no jobs.")
    db = DjangoDatabase()
    WORK.check_room(by, new_id())

    def begin() -> UUID:
        id = search_rows.insert(db, query=query, selections=selections, by=by)
        WORK.hand_over(id, job=None)
        record("start search", by, 1, {"search": str(id)})  # values are not repeated
        return id

    return db.in_transaction(begin)
