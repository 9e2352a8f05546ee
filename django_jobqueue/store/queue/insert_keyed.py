"""Enqueue many jobs of a type with a limit by key, whose keys the database makes."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.insert_many import prepare
from django_jobqueue.store.queue.insert_unique import CHUNK, INSERT_TAKEN, PREPARED
from django_jobqueue.store.queue.new_job import NewJob


def insert_many_keyed(
    db: DjangoDatabase, new: NewJob, ids: Sequence[UUID], texts: Sequence[str]
) -> bool:
    """Enqueue one job for each data, all or none; False if there is no such job
    type."""

    def insert() -> bool:
        row = prepare(db, new)
        if row is None:
            return False
        same = {**new.params(), **dict(zip(PREPARED, row, strict=True))}
        for start in range(0, len(ids), CHUNK):
            part = list(ids[start : start + CHUNK])
            own = {"keys": part, "ids": part, "texts": texts[start : start + CHUNK]}
            db.fetch(INSERT_TAKEN, {**same, **own})
        return True

    return db.in_transaction(insert)
