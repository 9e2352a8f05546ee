"""The jobs of a selection, some at a time, in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from django_jobqueue.search.selection import Selection
from django_jobqueue.store.bulk.window import Values
from django_jobqueue.store.connection import Database
from django_jobqueue.store.selection import TABLES, condition
from django_jobqueue.store.work_rows import JOB_TYPE

# Jobs that work operations off are no jobs of the project.
COUNT: Final = """
SELECT count(*) FROM {table} WHERE job_type <> %(internal)s AND {condition}
"""
SELECTED: Final = """
SELECT id FROM {table}
 WHERE id > %(after)s::uuid AND job_type <> %(internal)s AND {condition}
 ORDER BY id
 LIMIT %(most)s
"""
FIRST: Final = UUID(int=0)


def count_selected(db: Database, selection: Selection) -> int:
    """How many jobs are selected now."""
    values = Values()
    statement = COUNT.format(
        table=TABLES[selection.table], condition=condition(selection, values)
    )
    ((number,),) = db.fetch(statement, {**values.params, "internal": JOB_TYPE})
    return int(number)


def selected_ids(
    db: Database, selection: Selection, *, most: int
) -> Iterator[list[UUID]]:
    """Their ids, ``most`` at a time, each time those that are selected then."""
    values = Values()
    statement = SELECTED.format(
        table=TABLES[selection.table], condition=condition(selection, values)
    )
    params = {**values.params, "internal": JOB_TYPE, "most": most}
    after = FIRST
    while True:
        ids = [row[0] for row in db.fetch(statement, {**params, "after": after})]
        if ids:
            yield ids
        if len(ids) < most:
            return
        after = ids[-1]
