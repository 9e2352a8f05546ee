"""Searches through all jobs that workers carry on: start, stop, read, delete.

A chunk examines the next jobs of a table, newest first, of which those that match are
counted, and the first are noted; one transaction holds it and the new place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.states import WorkState
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.bulk.window import Values, part_of, pin
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.selection import condition
from django_jobqueue.store.work_rows import ACTIVE, Chunk, WorkTable

ORDER: Final = (Table.QUEUED, Table.ARCHIVED)

INSERT: Final = """
INSERT INTO jobqueue_console_jobsearch (state, query, selections, oldest, created_by)
VALUES ('queued', %(query)s, %(selections)s::jsonb,
        (SELECT finished_at FROM jobqueue_archivedjob ORDER BY finished_at, id LIMIT 1),
        %(by)s)
RETURNING id
"""
# What was searched for is kept no longer than somebody may want the result.
DROP: Final = """
DELETE FROM jobqueue_console_jobsearch
 WHERE created_at < clock_timestamp() - interval '7 days'
"""

MOST_NOTED: Final = 1_000  # jobs of each table

# The rows come in the order of an index, and only those of them are asked for what no
# index serves. None but the jobs that match leave the database.
ARCHIVED: Final = """
WITH seen AS MATERIALIZED (
    SELECT finished_at, id, {unindexed} AS is_wanted
      FROM jobqueue_archivedjob
     WHERE {position} AND {indexed}
     ORDER BY finished_at DESC, id DESC
     LIMIT %(max_rows)s)
SELECT count(*), count(*) FILTER (WHERE is_wanted),
       ARRAY(SELECT id::text FROM seen WHERE is_wanted
              ORDER BY finished_at DESC, id DESC LIMIT %(most)s),
       (SELECT ARRAY[to_jsonb(finished_at) #>> '{{}}', id::text] FROM seen
         ORDER BY finished_at, id LIMIT 1)
  FROM seen
"""
QUEUED: Final = """
WITH seen AS MATERIALIZED (
    SELECT id, {unindexed} AS is_wanted
      FROM jobqueue_queuedjob
     WHERE {position} AND {indexed}
     ORDER BY id DESC
     LIMIT %(max_rows)s)
SELECT count(*), count(*) FILTER (WHERE is_wanted),
       ARRAY(SELECT id::text FROM seen WHERE is_wanted
              ORDER BY id DESC LIMIT %(most)s),
       (SELECT ARRAY[id::text] FROM seen ORDER BY id LIMIT 1)
  FROM seen
"""
STATEMENTS: Final = {Table.ARCHIVED: ARCHIVED, Table.QUEUED: QUEUED}
POSITIONS: Final = {
    Table.ARCHIVED: "(finished_at, id) < (%(key_0)s::timestamptz, %(key_1)s::uuid)",
    Table.QUEUED: "id < %(key_0)s::uuid",
}

MOST_ACTIVE: Final = 3  # of one person
# Rows of a chunk, which are only read. What is kept of them fits into work_mem.
LARGEST: Final = 50_000


class Place(NamedTuple):
    """A table, and the key of the last job examined there."""

    table: Table
    key: Sequence[str] = ()

    @classmethod
    def from_json(cls, value: Sequence[str] | None) -> Place | None:
        """Read what was stored."""
        return cls(Table(value[0]), value[1:]) if value else None


class Search(NamedTuple):
    """A search as it was when it was read."""

    id: UUID
    selections: Mapping[Table, Selection]
    state: str  # of states.WorkState
    place: Place | None  # None: at the end, or not begun
    examined: int
    matched: Mapping[str, int]
    newest: Mapping[str, Sequence[str]]
    created_by: str
    job_id: UUID | None

    @property
    def first_place(self) -> Place:
        """The beginning of its first table."""
        return Place(next(table for table in ORDER if table in self.selections))

    def place_after(self, table: Table) -> Place | None:
        """The beginning of the next table; None if there is none."""
        later = ORDER[ORDER.index(table) + 1 :]
        return next((Place(one) for one in later if one in self.selections), None)


def _selections(stored: Mapping[str, Any]) -> Mapping[Table, Selection]:
    return {Table(name): Selection.from_json(one) for name, one in stored.items()}


SEARCHES: Final = WorkTable(
    "jobqueue_console_jobsearch",
    Search,
    json={
        "selections": _selections,
        "place": Place.from_json,
        "matched": dict,
        "newest": dict,
    },
    progress=("place", "examined", "matched", "newest"),
)


def insert(
    db: Database,
    *,
    query: str,
    selections: Mapping[Table, Selection],
    by: str,
) -> UUID:
    """A search that some job is to begin."""
    stored = {table.value: one.to_json() for table, one in selections.items()}
    params = {"query": query, "selections": json.dumps(stored), "by": by}
    id: UUID = db.fetch(INSERT, params)[0][0]
    return id


def progress(
    db: Database,
    search: Search,
    *,
    place: Place | None,
    examined: int,
    matched: Mapping[str, int],
    newest: Mapping[str, Sequence[str]],
) -> None:
    """Write down what was found, and the new place; None is the end."""
    stored = None if place is None else json.dumps([place.table.value, *place.key])
    SEARCHES.progress(
        db,
        search.id,
        WorkState.DONE if place is None else WorkState.RUNNING,
        place=stored,
        examined=examined,
        matched=json.dumps(matched),
        newest=json.dumps(newest),
    )


def chunk(db: Database, search: Search, *, max_rows: int) -> Chunk:
    """Examine the next jobs of a search that this transaction has locked.

    The queue comes first: a job that leaves it meanwhile is found in the archive, at
    the beginning of its order.
    """
    pin(db)
    place = search.place or search.first_place
    name = place.table.value
    noted = list(search.newest.get(name, ()))
    statement, params = _question(search, place, max_rows, MOST_NOTED - len(noted))
    ((examined, matches, ids, last),) = db.fetch(statement, params)
    at_end = examined < max_rows
    following = search.place_after(place.table) if at_end else Place(place.table, last)
    progress(
        db,
        search,
        place=following,
        examined=search.examined + examined,
        matched={**search.matched, name: search.matched.get(name, 0) + matches},
        newest={**search.newest, name: [*noted, *ids]},
    )
    return Chunk(examined=examined, over=following is None)


def _question(
    search: Search, place: Place, max_rows: int, most: int
) -> tuple[str, dict[str, Any]]:
    """The statement and its parameters."""
    selection, values = search.selections[place.table], Values()
    statement = STATEMENTS[place.table].format(
        position=POSITIONS[place.table] if place.key else "true",
        indexed=condition(part_of(selection, indexed=True), values),
        unindexed=condition(part_of(selection, indexed=False), values),
    )
    return statement, {
        **values.params,
        **{f"key_{number}": part for number, part in enumerate(place.key)},
        "max_rows": max_rows,
        "most": most,
    }


def drop(db: Database) -> None:
    """Delete those that are a week old."""
    db.run(DROP)


def time_of(place: Any) -> datetime | None:
    """When the last archived job that was examined had finished, of a stored place."""
    if isinstance(place, list) and place[:1] == [Table.ARCHIVED.value] and place[1:]:
        return datetime.fromisoformat(place[1])
    return None


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
        return chunk(db, row, max_rows=max_rows)

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
        id = insert(db, query=query, selections=selections, by=by)
        WORK.hand_over(id, job=None)
        record("start search", by, 1, {"search": str(id)})  # values are not repeated
        return id

    return db.in_transaction(begin)
