"""Stores searches, and moves them from state to state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.states import SearchState
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.store.connection import Database
from django_jobqueue.text.json_reading import read_json

ACTIVE: Final = (SearchState.QUEUED, SearchState.RUNNING)
ORDER: Final = (Table.QUEUED, Table.ARCHIVED)

INSERT: Final = """
INSERT INTO jobqueue_jobsearch (query, selections, oldest, created_by, job_id)
VALUES (%(query)s, %(selections)s::jsonb,
        (SELECT finished_at FROM jobqueue_archivedjob ORDER BY finished_at, id LIMIT 1),
        %(by)s, %(job)s)
RETURNING id
"""
_READ: Final = """
SELECT id, selections::text, state, place::text, examined, matched::text, newest::text,
       job_id
  FROM jobqueue_jobsearch
 WHERE id = %(id)s
"""
READ: Final = f"{_READ}"
LOCK: Final = f"{_READ}   FOR UPDATE"
PROGRESS: Final = """
UPDATE jobqueue_jobsearch
   SET state = CASE WHEN %(over)s THEN 'done' ELSE 'running' END,
       place = %(place)s::jsonb, examined = %(examined)s, matched = %(matched)s::jsonb,
       newest = %(newest)s::jsonb, progress_at = clock_timestamp(),
       finished_at = CASE WHEN %(over)s THEN clock_timestamp() END
 WHERE id = %(id)s
"""
END: Final = """
UPDATE jobqueue_jobsearch
   SET state = %(state)s, error = %(error)s, finished_at = clock_timestamp()
 WHERE id = %(id)s AND state = ANY (%(states)s::text[])
RETURNING id
"""
HAND_OVER: Final = """
UPDATE jobqueue_jobsearch
   SET job_id = %(to)s
 WHERE id = %(id)s AND job_id = %(job)s AND state = ANY (%(states)s::text[])
RETURNING id
"""
COUNT_ACTIVE: Final = """
SELECT count(*)
  FROM jobqueue_jobsearch
 WHERE created_by = %(by)s AND state = ANY (%(states)s::text[])
"""
# What was searched for is kept no longer than somebody may want the result.
DROP: Final = """
DELETE FROM jobqueue_jobsearch WHERE created_at < clock_timestamp() - interval '7 days'
"""


class Place(NamedTuple):
    """A table, and the key of the last job examined there."""

    table: Table
    key: Sequence[str] = ()


class Search(NamedTuple):
    """A search as it was when it was read."""

    id: UUID
    selections: Mapping[Table, Selection]
    state: str  # of states.SearchState
    place: Place | None  # None: at the end, or not begun
    examined: int
    matched: Mapping[str, int]
    newest: Mapping[str, Sequence[str]]
    job_id: UUID | None

    @property
    def first_place(self) -> Place:
        """The beginning of its first table."""
        return Place(next(table for table in ORDER if table in self.selections))

    def place_after(self, table: Table) -> Place | None:
        """The beginning of the next table; None if there is none."""
        later = ORDER[ORDER.index(table) + 1 :]
        return next((Place(one) for one in later if one in self.selections), None)


def insert(
    db: Database,
    *,
    query: str,
    selections: Mapping[Table, Selection],
    by: str,
    job: UUID,
) -> UUID:
    """A search that a job is to begin."""
    stored = {table.value: one.to_json() for table, one in selections.items()}
    params = {"query": query, "selections": json.dumps(stored), "by": by, "job": job}
    id: UUID = db.fetch(INSERT, params)[0][0]
    return id


def read(db: Database, id: UUID) -> Search | None:
    """The search with this id; None if there is none."""
    return next(map(_search, db.fetch(READ, {"id": id})), None)


def lock(db: Database, id: UUID) -> Search | None:
    """Read it, and lock it until the end of this transaction."""
    return next(map(_search, db.fetch(LOCK, {"id": id})), None)


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
    params = {
        "id": search.id,
        "over": place is None,
        "place": stored,
        "examined": examined,
        "matched": json.dumps(matched),
        "newest": json.dumps(newest),
    }
    db.run(PROGRESS, params)


def end(db: Database, id: UUID, state: SearchState, error: str = "") -> bool:
    """End one that goes on; False if none does."""
    params = {"id": id, "state": state.value, "error": error, "states": list(ACTIVE)}
    return bool(db.fetch(END, params))


def hand_over(db: Database, id: UUID, *, job: UUID, to: UUID) -> bool:
    """Another job carries it on; False if this one does not."""
    params = {"id": id, "job": job, "to": to, "states": list(ACTIVE)}
    return bool(db.fetch(HAND_OVER, params))


def number_active(db: Database, by: str) -> int:
    """How many searches of this person go on."""
    return int(db.fetch(COUNT_ACTIVE, {"by": by, "states": list(ACTIVE)})[0][0])


def drop(db: Database) -> None:
    """Delete those that are a week old."""
    db.run(DROP)


def _search(row: tuple[Any, ...]) -> Search:
    id, selections, state, place, examined, matched, newest, job_id = row
    table, *key = read_json(place) if place else [""]
    return Search(
        id=id,
        selections={
            Table(name): Selection.from_json(one)
            for name, one in read_json(selections).items()
        },
        state=state,
        place=Place(Table(table), key) if table else None,
        examined=examined,
        matched=read_json(matched),
        newest=read_json(newest),
        job_id=job_id,
    )


def time_of(place: Any) -> datetime | None:
    """When the last archived job that was examined had finished, of a stored place."""
    if isinstance(place, list) and place[:1] == [Table.ARCHIVED.value] and place[1:]:
        return datetime.fromisoformat(place[1])
    return None
