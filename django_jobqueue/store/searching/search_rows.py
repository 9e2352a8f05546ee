"""Starts, stores and deletes searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.states import WorkState
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import Database
from django_jobqueue.store.work_rows import WorkTable

ORDER: Final = (Table.QUEUED, Table.ARCHIVED)

INSERT: Final = """
INSERT INTO jobqueue_jobsearch (state, query, selections, oldest, created_by)
VALUES ('queued', %(query)s, %(selections)s::jsonb,
        (SELECT finished_at FROM jobqueue_archivedjob ORDER BY finished_at, id LIMIT 1),
        %(by)s)
RETURNING id
"""
# What was searched for is kept no longer than somebody may want the result.
DROP: Final = """
DELETE FROM jobqueue_jobsearch WHERE created_at < clock_timestamp() - interval '7 days'
"""


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
    "jobqueue_jobsearch",
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


def drop(db: Database) -> None:
    """Delete those that are a week old."""
    db.run(DROP)


def time_of(place: Any) -> datetime | None:
    """When the last archived job that was examined had finished, of a stored place."""
    if isinstance(place, list) and place[:1] == [Table.ARCHIVED.value] and place[1:]:
        return datetime.fromisoformat(place[1])
    return None
