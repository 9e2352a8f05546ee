"""Rows of work that is done in chunks: bulk operations, erasures, searches.

Every such table has columns that say which job works a row off, and how far it is; the
statements that move a row from state to state are the same for all. So is what is done
with rows that the database refuses: a chunk leaves them out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import psycopg
from django.db import Error as DatabaseError

from django_jobqueue.domain.registry import BULK
from django_jobqueue.domain.states import WorkState
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.errors import in_a_line, is_of_a_row, server_error
from django_jobqueue.store.partial_batches import halves
from django_jobqueue.text.json_reading import read_json

logger = logging.getLogger("django_jobqueue.database")

JOB_TYPE: Final = BULK  # of the jobs that do the work
REFUSED: Final = "refused"  # the reason of those that are left out
# What would be checked at the commit, foreign keys of Django's for example, is checked
# by each statement.
IMMEDIATE: Final = "SET CONSTRAINTS ALL IMMEDIATE"

# Those that have neither ended nor are yet to begin.
ACTIVE: Final = (WorkState.QUEUED, WorkState.RUNNING)
OPEN: Final = (*ACTIVE, WorkState.PAUSED, WorkState.FAILED)
RESUMABLE: Final = (WorkState.PAUSED, WorkState.FAILED)
OVER: Final = (WorkState.DONE, WorkState.STOPPED)

_READ: Final = "SELECT {columns} FROM {table} WHERE id = %(id)s"
# Compare and set: of two clicks, or two operators, one meets the state that it needs.
_MOVE: Final = """
UPDATE {table}
   SET state = %(to)s::text, error = %(error)s,
       job_id = coalesce(%(job)s::uuid, job_id),
       finished_at = CASE WHEN %(to)s::text IN ('stopped', 'failed')
                          THEN clock_timestamp()
                     END{forgotten}
 WHERE id = %(id)s AND state = ANY (%(states)s::text[])
RETURNING state
"""
# The job is the fence: one that was succeeded by another does nothing more.
_HAND_OVER: Final = """
UPDATE {table}
   SET job_id = %(to)s
 WHERE id = %(id)s AND job_id IS NOT DISTINCT FROM %(job)s::uuid
   AND state IN ('draft', 'queued', 'running')
RETURNING state
"""
_PROGRESS: Final = """
UPDATE {table}
   SET state = %(to)s::text,
       started_at = coalesce(started_at, clock_timestamp()),
       progress_at = clock_timestamp(),
       finished_at = CASE WHEN %(to)s::text <> 'running' THEN clock_timestamp() END,
       {progress}{forgotten}
 WHERE id = %(id)s
"""
_COUNTED: Final = "UPDATE {table} SET {counts} WHERE id = %(id)s"
_DISCARD: Final = """
DELETE FROM {table} WHERE id = %(id)s AND state = 'draft' RETURNING id
"""
# Whatever ends it clears this column in the same statement.
_FORGOTTEN: Final = """,
       {column} = CASE WHEN %(to)s::text IN ('done', 'stopped') THEN ''
                       ELSE {column} END"""
# Only those with a job take a worker's time: not what is paused, and no draft that is
# counted. By ``before`` those that the caller began earlier.
_NUMBER_ACTIVE: Final = """
SELECT count(*)
  FROM {table} AS one
  JOIN jobqueue_queuedjob AS job ON job.id = one.job_id
 WHERE one.created_by = %(by)s AND one.id <> %(id)s
   AND one.state IN ('draft', 'queued', 'running')
   AND (%(all)s OR one.created_at < (SELECT created_at FROM {table} WHERE id = %(id)s))
"""
IS_QUEUED: Final = "SELECT EXISTS (SELECT FROM jobqueue_queuedjob WHERE id = %(id)s)"


class Chunk(NamedTuple):
    """The result of one chunk."""

    examined: int = 0
    changed: int = 0
    asked: int = 0  # of the changed ones: running jobs that were asked to stop
    skipped: Mapping[str, int] = MappingProxyType({})
    over: bool = False  # nothing is left
    pause: float = 0.0  # seconds until it may go on


class Work(Protocol):
    """A row, as it was when it was read; a named tuple of columns."""

    @property
    def id(self) -> UUID: ...
    @property
    def state(self) -> str: ...
    @property
    def job_id(self) -> UUID | None: ...
    @property
    def created_by(self) -> str: ...


W = TypeVar("W", bound=Work)
T = TypeVar("T")
Result = TypeVar("Result")


class WorkTable(Generic[W]):
    """A table of such rows, and the statements for it.

    ``json`` says what reads the JSON of a column; ``progress`` are the columns that a
    chunk of work writes, ``counts`` those that a chunk of counting writes; ``forgets``
    is the column that is cleared at the end.
    """

    def __init__(
        self,
        table: str,
        row: type[W],
        *,
        json: Mapping[str, Callable[[Any], Any]],
        progress: Sequence[str],
        counts: Sequence[str] = (),
        forgets: str = "",
    ) -> None:
        self._row: Callable[..., W] = row
        self._fields: Sequence[str] = row._fields  # type: ignore[attr-defined]
        self._json = json
        self.columns = ", ".join(
            f"{name}::text" if name in json else name for name in self._fields
        )
        forgotten = _FORGOTTEN.format(column=forgets) if forgets else ""
        self.READ = _READ.format(columns=self.columns, table=table)
        self.LOCK = f"{self.READ} FOR UPDATE"
        self.MOVE = _MOVE.format(table=table, forgotten=forgotten)
        self.HAND_OVER = _HAND_OVER.format(table=table)
        self.PROGRESS = _PROGRESS.format(
            table=table, progress=self._assignments(progress), forgotten=forgotten
        )
        counted = self._assignments(counts)
        self.COUNTED = counted and _COUNTED.format(table=table, counts=counted)
        self.DISCARD = _DISCARD.format(table=table)
        self.NUMBER_ACTIVE = _NUMBER_ACTIVE.format(table=table)

    def _assignments(self, names: Sequence[str]) -> str:
        return ", ".join(
            f"{name} = %({name})s{'::jsonb' if name in self._json else ''}"
            for name in names
        )

    def row(self, values: Sequence[Any]) -> W:
        """A row of a SELECT of ``columns``."""
        named = dict(zip(self._fields, values, strict=True))
        for name, read in self._json.items():
            text = named[name]
            named[name] = read(None if text is None else read_json(text))
        return self._row(**named)

    def read(self, db: Database, id: UUID) -> W | None:
        """The row with this id; None if there is none."""
        return next(map(self.row, db.fetch(self.READ, {"id": id})), None)

    def lock(self, db: Database, id: UUID) -> W | None:
        """Read it, and lock it until the end of this transaction."""
        return next(map(self.row, db.fetch(self.LOCK, {"id": id})), None)

    def move(
        self,
        db: Database,
        id: UUID,
        states: Sequence[str],
        to: str,
        *,
        job: UUID | None = None,
        error: str = "",
    ) -> bool:
        """One of these states → another; False if it is in none of them."""
        states = list(states)
        params = {"id": id, "states": states, "to": to, "job": job, "error": error}
        return bool(db.fetch(self.MOVE, params))

    def hand_over(
        self, db: Database, id: UUID, *, job: UUID | None, to: UUID | None
    ) -> str | None:
        """Another job works it off from now on; returns the state, or None if this job
        does not work it off."""
        rows = db.fetch(self.HAND_OVER, {"id": id, "job": job, "to": to})
        return rows[0][0] if rows else None

    def progress(self, db: Database, id: UUID, to: str, **values: Any) -> None:
        """Store what a chunk did, and the state that it led to."""
        db.run(self.PROGRESS, {"id": id, "to": to, **values})

    def set_counted(self, db: Database, id: UUID, **values: Any) -> None:
        """Store what was counted."""
        db.run(self.COUNTED, {"id": id, **values})

    def discard(self, db: Database, id: UUID) -> bool:
        """Delete a draft; what has started stays."""
        return bool(db.fetch(self.DISCARD, {"id": id}))

    def number_active(
        self, db: Database, by: str, id: UUID, *, earlier: bool = False
    ) -> int:
        """How many other rows of this caller some job works off; of the ``earlier``
        ones only, if so."""
        params = {"by": by, "id": id, "all": not earlier}
        return int(db.fetch(self.NUMBER_ACTIVE, params)[0][0])


def is_queued(db: Database, job: UUID) -> bool:
    """True if the job that does the work is there."""
    return bool(db.fetch(IS_QUEUED, {"id": job})[0][0])


def as_it_is(value: Any) -> Any:
    """Of JSON that is read as it is."""
    return value


def leaving_out_refused(
    db: DjangoDatabase, work: Callable[..., Result], name: str, *, shows_errors: bool
) -> Result:
    """Do this work in one transaction; where the database refuses a row, again, with
    ``in_parts``, which leaves out such rows. The log says why; unless
    ``shows_errors``, without what may have a value."""
    try:
        return db.in_transaction(work)
    except DatabaseError as error:
        cause = _refusal(error)
        code = f"{type(cause).__name__} {cause.sqlstate}"
        text = in_a_line(cause) if shows_errors else code
        logger.warning("Rows that are refused are left out of %s: %s", name, text)

    def again() -> Result:
        db.run(IMMEDIATE)
        return work(in_parts=True)

    return db.in_transaction(again)


def apply_to_others(
    db: DjangoDatabase, items: Sequence[T], apply: Callable[[Sequence[T]], Result]
) -> tuple[list[Result], list[T]]:
    """Apply this to all items but those that are refused, in the caller's transaction;
    returns the results of the parts that it took, and the items that are left out."""
    try:
        return [db.in_transaction(lambda: apply(items))], []
    except DatabaseError as error:
        _refusal(error)
        if len(items) == 1:
            return [], list(items)
    results, refused = [], []
    for part in halves(items):
        done, left_out = apply_to_others(db, part, apply)
        results += done
        refused += left_out
    return results, refused


def _refusal(error: DatabaseError) -> psycopg.Error:
    """The server's error about a row. Raises any other one again."""
    cause = server_error(error)
    if cause is None or not is_of_a_row(cause):
        raise error
    return cause
