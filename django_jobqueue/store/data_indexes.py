"""Indexes on values in the data of archived jobs, which job types declare.

Each is of one job type and one key, so other types pay next to nothing for it. The
value is indexed as text, and only its beginning: an index entry has a limit, and a job
must never be refused because of its data.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from django_jobqueue.store.connection import Database
from django_jobqueue.store.selection import forms_of

PREFIX: Final = "jobqueue_d_"
LENGTH: Final = 200  # characters of a value; whoever searches compares all of it again

EXISTING: Final = """
SELECT class.relname, index.indisvalid,
       EXISTS (SELECT FROM pg_stat_progress_create_index AS making
                WHERE making.index_relid = class.oid)
  FROM pg_index AS index
  JOIN pg_class AS class ON class.oid = index.indexrelid
 WHERE index.indrelid = to_regclass('jobqueue_archivedjob')
   AND class.relname LIKE 'jobqueue\\_d\\_%%'
"""
# Whatever else plain SQL wrote there is passed over.
DECLARED: Final = """
SELECT type.name, path #>> '{}'
  FROM jobqueue_jobtype AS type
 CROSS JOIN LATERAL jsonb_path_query(type.indexed, '$[*]') AS path
 WHERE jsonb_typeof(type.indexed) = 'array' AND jsonb_typeof(path) = 'string'
"""

# A table that is written to all the time, so neither may lock it. They must be the only
# statement of their transaction.
CREATE: Final = """
CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON jobqueue_archivedjob
       (({expression}), finished_at DESC, id DESC) WHERE job_type = {job_type}
"""
DROP: Final = "DROP INDEX CONCURRENTLY IF EXISTS {name}"
NO_LIMITS: Final = "SET statement_timeout = 0; SET lock_timeout = 0"


class DataIndex(NamedTuple):
    """The index of one key, which may be a path, of one job type."""

    job_type: str
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the index, from what it is of."""
        what = json.dumps([self.job_type, *self.path])
        return PREFIX + hashlib.sha256(what.encode()).hexdigest()[:16]

    @property
    def create(self) -> str:
        """The statement that makes it."""
        return CREATE.format(
            name=self.name,
            expression=expression(self.path),
            job_type=_literal(self.job_type),
        )


class Differences(NamedTuple):
    """The declared and the existing indexes."""

    missing: tuple[DataIndex, ...]
    broken: tuple[str, ...]  # names; whoever made them was interrupted
    undeclared: tuple[str, ...]


def expression(path: Iterable[str]) -> str:
    """The value as the index has it; statements have to say the same."""
    keys = ",".join(json.dumps(key, ensure_ascii=False) for key in path)
    return f"left(data #>> {_literal('{' + keys + '}')}, {LENGTH})"


def texts_of(value: Any) -> list[str]:
    """The texts that the index has for a value and its other form; none if it cannot
    find all of them: 7.5 may be there as 7.50."""
    texts = [_texts(form) for form in forms_of(value)]
    return sorted({text for some in texts for text in some}) if all(texts) else []


def _texts(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [str(value), f"{value}.0"]
    return [value[:LENGTH]] if isinstance(value, str) else []


def differences(db: Database) -> Differences:
    """Look at what is declared and what is there."""
    declared = {
        index.name: index
        for job_type, path in db.fetch(DECLARED)
        for index in [DataIndex(job_type, tuple(path.split(".")))]
        if path
    }
    rows = db.fetch(EXISTING)
    there = {name for name, is_valid, is_being_made in rows}
    return Differences(
        missing=tuple(declared[name] for name in sorted(declared.keys() - there)),
        broken=tuple(name for name, valid, making in rows if not (valid or making)),
        undeclared=tuple(sorted(there - declared.keys())),
    )


def usable(db: Database) -> frozenset[str]:
    """The names of those that are there and complete."""
    return frozenset(name for name, is_valid, _ in db.fetch(EXISTING) if is_valid)


def make(db: Database, index: DataIndex) -> None:
    """Make it, without a lock that a worker would wait for; this takes as long as it
    takes to read the table twice. Never in a transaction."""
    db.run(NO_LIMITS)
    db.run(index.create)


def drop(db: Database, name: str) -> None:
    """Drop it, likewise."""
    db.run(NO_LIMITS)
    db.run(DROP.format(name=name))


def _literal(text: str) -> str:
    """As SQL has it with standard strings; % is doubled for the driver."""
    return "'" + text.replace("'", "''").replace("%", "%%") + "'"
