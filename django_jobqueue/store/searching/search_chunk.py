"""One chunk of a search: the next jobs of a table, newest first, of which those that
match are counted, and the first are noted.

The caller's transaction holds all of it, with the new place of the search.
"""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.search.selection import Table
from django_jobqueue.store.bulk.window import Values, part_of, pin
from django_jobqueue.store.connection import Database
from django_jobqueue.store.searching import search_rows
from django_jobqueue.store.searching.search_rows import Place, Search
from django_jobqueue.store.selection import condition
from django_jobqueue.store.work_rows import Chunk

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
    search_rows.progress(
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
