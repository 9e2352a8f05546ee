"""Reads all jobs, for tests, whose databases are small."""

from __future__ import annotations

from typing import Final

from django_jobqueue.store.connection import Database
from django_jobqueue.store.find import ARCHIVED, QUEUED, job_of
from django_jobqueue.store.rows import Job

ENQUEUED: Final = f"{QUEUED} UNION ALL {ARCHIVED} ORDER BY id"


def enqueued(db: Database) -> list[Job]:
    """All jobs, waiting, running and over, in the order in which they were made."""
    return [job_of(row) for row in db.fetch(ENQUEUED)]
