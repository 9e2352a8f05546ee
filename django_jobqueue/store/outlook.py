"""What a bulk operation would be about: counted for a moment and no longer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django_jobqueue.selection import Selection, Table
from django_jobqueue.store.budget import in_time
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.operations import JOB_TYPE
from django_jobqueue.store.selection import TABLES, condition

LOOKED_AT: Final = 10_000  # jobs whose statuses and warnings are counted
BUDGET: Final = 400  # milliseconds for each question
EXAMPLES: Final = 5

_ENDS: Final = {Table.ARCHIVED: "finished_at", Table.QUEUED: "created_at"}
_FROM: Final = """
  FROM {table}
 WHERE {moment} <= {cutoff} AND job_type <> {internal} AND {condition}
"""
COUNT: Final = "SELECT count(*) {from_}"
ESTIMATE: Final = "EXPLAIN (FORMAT JSON) SELECT {from_}"
ROWS_OF_TABLE: Final = """
SELECT greatest(reltuples, 0)::bigint FROM pg_class
 WHERE oid = %(table)s::regclass
"""
BREAKDOWN: Final = """
SELECT job.status, count(*), min(job.at), max(job.at),
       count(*) FILTER (WHERE type.name IS NULL),
       count(*) FILTER (WHERE type.delivery = 'at_most_once'),
       count(*) FILTER (WHERE job.expires_at <= clock_timestamp()),
       count(*) FILTER (WHERE {archived} AND (
         (SELECT true FROM jobqueue_queuedjob AS q
           WHERE q.replay_of = job.id LIMIT 1) IS NOT NULL
         OR (SELECT true FROM jobqueue_archivedjob AS a
              WHERE a.replay_of = job.id LIMIT 1) IS NOT NULL)),
       array_agg(DISTINCT job.job_type)
  FROM (SELECT id, status, job_type, expires_at, {moment} AS at {from_} LIMIT {most})
       AS job
  LEFT JOIN jobqueue_jobtype AS type ON type.name = job.job_type
 GROUP BY job.status
 ORDER BY job.status
"""
SOME: Final = "SELECT id {from_} LIMIT {most}"


@dataclass(slots=True)
class Count:
    """How many jobs there are; an estimate unless ``exact``."""

    number: int
    exact: bool
    of_table: int = 0  # rows of the whole table, as the planner believes


@dataclass(slots=True)
class Outlook:
    """What is among the first jobs of a selection."""

    looked_at: int = 0
    complete: bool = False  # whether those were all
    in_time: bool = True  # whether the database answered within the budget
    by_status: dict[str, int] = field(default_factory=dict)
    oldest: datetime | None = None
    newest: datetime | None = None
    without_type: int = 0
    at_most_once: int = 0
    expired: int = 0
    replayed: int = 0
    job_types: set[str] = field(default_factory=set)
    examples: Sequence[UUID] = ()


class Question:
    """The jobs of a selection up to a moment, as part of a statement."""

    def __init__(self, selection: Selection, cutoff: datetime | None) -> None:
        self.params: dict[str, Any] = {}
        moment = _ENDS[selection.table]
        self._parts = {
            "moment": moment,
            "archived": "true" if selection.table is Table.ARCHIVED else "false",
        }
        self._parts["from_"] = _FROM.format(
            table=TABLES[selection.table],
            moment=moment,
            cutoff="clock_timestamp()" if cutoff is None else self._value(cutoff),
            internal=self._value(JOB_TYPE),
            condition=condition(selection, self._value),
        )

    def statement(self, text: str, most: int = 0) -> str:
        """The statement with the jobs filled in, and how many are read at most."""
        return text.format(**self._parts, most=most)

    def _value(self, value: Any) -> str:
        name = f"value_{len(self.params)}"
        self.params[name] = value
        return f"%({name})s"


def rows_of(db: DjangoDatabase, table: Table) -> int:
    """How many rows the planner believes the whole table to have; 0 is unknown."""
    rows: int = db.fetch(ROWS_OF_TABLE, {"table": TABLES[table]})[0][0]
    return rows


def count(
    db: DjangoDatabase,
    selection: Selection,
    cutoff: datetime | None,
    *,
    budget: int = BUDGET,
) -> Count:
    """How many jobs are selected, up to this moment (None is now); an estimate if that
    takes more than ``budget`` milliseconds."""
    if selection.nothing:
        return Count(0, True)
    question = Question(selection, cutoff)
    of_table = rows_of(db, selection.table)
    statement = question.statement(COUNT)
    rows = in_time(db, budget, lambda: db.fetch(statement, question.params))
    if rows is not None:
        return Count(rows[0][0], True, of_table)
    ((plan,),) = db.fetch(question.statement(ESTIMATE), question.params)
    found = plan if isinstance(plan, list) else json.loads(plan)
    estimate = int(found[0]["Plan"]["Plan Rows"])
    return Count(max(estimate, 1), False, of_table)


def look(db: DjangoDatabase, selection: Selection, cutoff: datetime) -> Outlook:
    """What is among the first ten thousand of them, and some examples."""
    if selection.nothing:
        return Outlook(complete=True)
    question = Question(selection, cutoff)
    breakdown = question.statement(BREAKDOWN, LOOKED_AT + 1)
    rows = in_time(db, BUDGET, lambda: db.fetch(breakdown, question.params))
    some = question.statement(SOME, EXAMPLES)
    examples = in_time(db, BUDGET, lambda: db.fetch(some, question.params))
    outlook = Outlook(in_time=rows is not None)
    outlook.examples = [id for (id,) in examples or ()]
    for status, number, oldest, newest, *warnings, job_types in rows or ():
        outlook.by_status[status] = number
        outlook.oldest = min(filter(None, (outlook.oldest, oldest)))
        outlook.newest = max(filter(None, (outlook.newest, newest)))
        outlook.without_type += warnings[0]
        outlook.at_most_once += warnings[1]
        outlook.expired += warnings[2]
        outlook.replayed += warnings[3]
        outlook.job_types.update(job_types)
    outlook.looked_at = sum(outlook.by_status.values())
    outlook.complete = outlook.in_time and outlook.looked_at <= LOOKED_AT
    return outlook
