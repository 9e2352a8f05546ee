"""One chunk of an erasure: the next rows of a table, of which those that hold the value
are counted, erased or deleted.

The caller's transaction holds all of it, with the place of the erasure: whatever dies
meanwhile, the next chunk goes on where the last one that was committed ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.contrib.privacy.erasure_rows import ERASURES, Erasure, Position
from django_jobqueue.contrib.privacy.personal_value import ErasureAct, PersonalValue
from django_jobqueue.contrib.privacy.searched_tables import sources
from django_jobqueue.domain.states import Holds, WorkState
from django_jobqueue.store.bulk.window import pin
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.control.cancel import cancel
from django_jobqueue.store.control.prune import prune_ids
from django_jobqueue.store.personal_columns import (
    ARCHIVED,
    GIVEN,
    QUEUED,
    RUNNING,
    SOURCES,
    Column,
    Source,
)
from django_jobqueue.store.remade_keys import LIMIT_KEY
from django_jobqueue.store.work_rows import REFUSED, Chunk, apply_to_others

MOST_FIRST: Final = 20  # rows of each table that are named
MOST_PASSES: Final = 10
PAUSE: Final = 60.0  # seconds after the first pass, if jobs run; then twice as long
CANCELLED: Final = "personal data erased"

EXISTS: Final = "SELECT to_regclass(%(table)s) IS NOT NULL"
# All texts of a row as one: whether it may hold the value. The pattern has the cases of
# characters outside of ASCII. "C" leaves those to it: by another collation a letter in
# title case (ǅ) is taken for its upper and its lower case, and not for itself. What
# begins and ends where a word does is asked of those rows alone. Only they leave the
# database, and the last one, which is the new place: to read all keys took twice as
# long as this.
SCAN: Final = """
SELECT {order}, matches, examined
  FROM (SELECT {order}, seen.content COLLATE "C" ~* %(pattern)s AS matches,
               count(*) OVER () AS examined,
               row_number() OVER (ORDER BY {order}) AS number
          FROM (SELECT {order}, concat_ws(' ', {columns}) AS content
                  FROM {table}
                 WHERE {position} AND {where}
                 ORDER BY {order}
                 LIMIT %(max_rows)s) AS seen) AS numbered
 WHERE matches OR number = examined
 ORDER BY number
"""
SINCE: Final = """{came} >= (SELECT started_at FROM jobqueue_privacy_erasure
                  WHERE id = %(erasure)s)"""
READ: Final = "SELECT {columns} FROM {table} WHERE {is_row} {lock}"
UPDATE: Final = "UPDATE {table} SET {assignments} WHERE {is_row}"
DELETE: Final = "DELETE FROM {table} WHERE {is_row}"
# Their keys are made of the values.
FREE_KEYS: Final = """
DELETE FROM jobqueue_uniquewindow WHERE job_id = ANY (%(ids)s::uuid[])
"""
PLACES: Final = """
SELECT finished_at, id FROM jobqueue_archivedjob
 WHERE id = ANY (%(ids)s::uuid[])
 ORDER BY id
"""

Key = tuple[str, ...]  # what names a row, as text


class Row(NamedTuple):
    """A row that holds the value."""

    name: str  # of its table; of a running job "running"
    key: Key
    shown: str  # the id of the job that it is of, or its own
    changes: Mapping[str, str]  # what its columns are without the value


@dataclass(slots=True)
class Hits:
    """The rows of a chunk that hold the value."""

    counts: Counter[str] = field(default_factory=Counter)  # by the names of rows
    first: dict[str, list[str]] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Count it, and name it if it is one of the first."""
        self.counts[row.name] += 1
        self.first.setdefault(row.name, []).append(row.shown)


def chunk(
    db: DjangoDatabase, erasure: Erasure, *, max_rows: int, in_parts: bool = False
) -> Chunk:
    """Examine the next rows of an erasure that this transaction has locked;
    ``in_parts`` leaves out those that the database refuses to change."""
    pin(db)
    place = erasure.position
    reads, personal = _reads(erasure), erasure.personal
    source = reads[place.source]
    examined, keys, last = _scan(db, erasure, source, place.cursor, max_rows)
    if erasure.state == WorkState.DRAFT:
        hits = _count(db, source, personal, keys)
    elif in_parts:
        hits = _erase_in_parts(db, source, personal, keys, erasure.act)
    else:
        hits = _erase(db, source, personal, keys, erasure.act)
    at_end = examined < max_rows
    running, refused = hits.counts[RUNNING], hits.counts[REFUSED]
    place = Position(
        place.source + at_end,
        None if at_end else last,
        place.hits + hits.counts.total(),
        place.running + running,
        place.refused + refused,
    )
    ended = place.source == len(reads)  # of the pass
    over, pause = _advance(db, erasure, hits, place, examined, ended=ended)
    changed = hits.counts.total() - running - refused
    return Chunk(examined=examined, changed=changed, over=over, pause=pause)


def _reads(erasure: Erasure) -> list[Source]:
    """What a pass reads. Meanwhile an archived job may be replayed and pruned, and a
    schedule fire and be deleted: what came since the start is read once more at the
    end."""
    every = sources()
    if erasure.state == WorkState.DRAFT:
        return every
    again = [replace(s, where=SINCE.format(came=s.since)) for s in every if s.since]
    return [*every, *again]


def _advance(
    db: Database,
    erasure: Erasure,
    hits: Hits,
    place: Position,
    examined: int,
    *,
    ended: bool,
) -> tuple[bool, float]:
    """Store the place, at which the pass has ``ended`` or not; returns whether all is
    done, and how long to wait."""
    if erasure.state == WorkState.DRAFT:
        counted = _counted(erasure.counted, hits)
        ERASURES.set_counted(
            db,
            erasure.id,
            counted=json.dumps(counted),
            examined=erasure.examined + examined,
            total=sum(one["rows"] for one in counted.values()) if ended else None,
            position=place.to_json(),
        )
        return ended, 0.0
    passes = erasure.passes + ended
    # What moved between tables meanwhile is met by the next pass. The last one finds
    # nothing that it may change, or is one too many.
    over = ended and (place.hits == place.refused or passes >= MOST_PASSES)
    remaining = dict(erasure.remaining)
    if ended:
        others = place.hits - place.running - place.refused
        counts = {
            RUNNING: place.running,
            REFUSED: place.refused,
            "written_again": others if over else 0,
        }
        remaining = {reason: n for reason, n in counts.items() if n}
    changed = Counter(erasure.changed)
    unchanged = (RUNNING, REFUSED)
    changed.update({n: c for n, c in hits.counts.items() if n not in unchanged})
    ERASURES.progress(
        db,
        erasure.id,
        WorkState.DONE if over else WorkState.RUNNING,
        changed=json.dumps(changed),
        remaining=json.dumps(remaining),
        passes=passes,
        position=(Position() if ended else place).to_json(),
    )
    waits = ended and not over and place.running
    return over, PAUSE * 2.0 ** (passes - 1) if waits else 0.0


def _counted(before: Mapping[str, Any], hits: Hits) -> dict[str, Any]:
    counted = {name: dict(one) for name, one in before.items()}
    for name, number in hits.counts.items():
        one = counted.setdefault(name, {"rows": 0, "first": []})
        one["rows"] += number
        one["first"] = [*one["first"], *hits.first[name]][:MOST_FIRST]
    return counted


def _scan(
    db: Database,
    erasure: Erasure,
    source: Source,
    cursor: Sequence[str] | None,
    max_rows: int,
) -> tuple[int, list[Key], Key]:
    """The number of the next rows, the keys of those that may hold the value, and the
    key of the last one."""
    if not db.fetch(EXISTS, {"table": source.table})[0][0]:
        return 0, [], ()
    order = ", ".join(source.order)
    position = "true"
    if cursor is not None:
        values = (f"%({name})s::{type}" for name, type in source.order.items())
        position = f"({order}) > ({', '.join(values)})"
    statement = SCAN.format(
        columns=", ".join(column.name for column in source.columns),
        table=source.table,
        position=position,
        where=source.where,
        order=order,
    )
    params: dict[str, Any] = dict(zip(source.order, cursor or (), strict=False))
    params |= {"pattern": erasure.personal.pattern, "max_rows": max_rows}
    params["erasure"] = erasure.id
    rows = db.fetch(statement, params)
    keys = [tuple(map(_written, row[:-2])) for row in rows]
    hits = [key for key, row in zip(keys, rows, strict=True) if row[-2]]
    return (rows[-1][-1], hits, keys[-1]) if rows else (0, [], ())


def _count(
    db: Database, source: Source, personal: PersonalValue, keys: Sequence[Key]
) -> Hits:
    hits = Hits()
    for row in _holding(db, source, personal, keys, lock=""):
        hits.add(row)
    return hits


def _erase(
    db: Database, source: Source, personal: PersonalValue, keys: Sequence[Key], act: str
) -> Hits:
    hits, ids = Hits(), []
    for row in _holding(db, source, personal, keys, lock="FOR UPDATE"):
        hits.add(row)
        if source.name == QUEUED and row.changes.keys() & GIVEN:
            ids += [] if row.name == RUNNING else [UUID(row.key[-1])]
        elif source.is_of_value or (
            source.name != QUEUED and source.is_of_jobs and act == ErasureAct.DELETE
        ):
            ids += _delete(db, source, row)
        else:
            ids += _update(db, source, row)
    if not ids:
        return hits
    if source.name == QUEUED:  # they must not run without the value, so they do not run
        places = {"ids": cancel(db, ids, reason=CANCELLED).archived}
        archived = [tuple(map(_written, key)) for key in db.fetch(PLACES, places)]
        (source,) = (one for one in SOURCES if one.name == ARCHIVED)
        _erase(db, source, personal, archived, act)
    else:
        db.run(FREE_KEYS, {"ids": ids})
    return hits


def _erase_in_parts(
    db: DjangoDatabase,
    source: Source,
    personal: PersonalValue,
    keys: Sequence[Key],
    act: str,
) -> Hits:
    parts, refused = apply_to_others(
        db, keys, lambda part: _erase(db, source, personal, part, act)
    )
    hits = Hits(Counter({REFUSED: len(refused)}))
    for part in parts:
        hits.counts += part.counts
    return hits


def _holding(
    db: Database,
    source: Source,
    personal: PersonalValue,
    keys: Sequence[Key],
    *,
    lock: str,
) -> Iterator[Row]:
    """Those of these rows that hold the value."""
    columns = ", ".join(f"{column.name}::text" for column in source.columns)
    statement = READ.format(
        columns=f"{source.reads}, {columns}",
        table=source.table,
        is_row=_is_row(source),
        lock=lock,
    )
    for key in keys:
        for read, *contents in db.fetch(statement, _named(source, key)):
            changes = {
                column.name: changed
                for column, content in zip(source.columns, contents, strict=True)
                if content is not None
                and (changed := personal.erased(column.holds, content)) != content
            }
            if changes:
                is_used = read == RUNNING and changes.keys() & GIVEN
                name = RUNNING if is_used else source.name
                shown = str(read) if source.reads == "job_id" else key[-1]
                yield Row(name, key, shown, changes)


def _update(db: Database, source: Source, row: Row) -> list[UUID]:
    """Erase the values of a row; returns the id of an archived job."""
    types = {column.name: _type_of(column) for column in source.columns}
    assignments = {name: f"%(new_{name})s::{types[name]}" for name in row.changes}
    for name in row.changes:
        assignments |= source.also.get(name, {})
    if "data" in row.changes and "limit_key" in types.keys() - row.changes.keys():
        assignments["limit_key"] = LIMIT_KEY.format(
            row=source.table, data="%(new_data)s"
        )
    statement = UPDATE.format(
        table=source.table,
        assignments=", ".join(f"{name} = {new}" for name, new in assignments.items()),
        is_row=_is_row(source),
    )
    changes = {f"new_{name}": content for name, content in row.changes.items()}
    db.run(statement, {**_named(source, row.key), **changes})
    return [UUID(row.key[-1])] if source.name == ARCHIVED else []


def _delete(db: Database, source: Source, row: Row) -> list[UUID]:
    """Delete a row, and with an archived job what is known of it; returns its id."""
    if source.name == ARCHIVED:
        return prune_ids(db, [UUID(row.key[-1])])
    statement = DELETE.format(table=source.table, is_row=_is_row(source))
    db.run(statement, _named(source, row.key))
    return []


def _is_row(source: Source) -> str:
    parts = (f"{name} = %({name})s::{type}" for name, type in source.order.items())
    return " AND ".join(parts)


def _named(source: Source, key: Sequence[str]) -> dict[str, str]:
    return dict(zip(source.order, key, strict=True))


def _type_of(column: Column) -> str:
    """A text that has become longer than its column is cut by the cast."""
    if column.holds is not Holds.TEXT:
        return "jsonb"
    return "text" if column.longest is None else f"varchar({column.longest})"


def _written(key: Any) -> str:
    """As JSON can hold it; a time to the microsecond, as the table has it."""
    return key.isoformat() if isinstance(key, datetime) else str(key)
