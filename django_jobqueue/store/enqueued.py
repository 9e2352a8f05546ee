"""All jobs there are: for tests, whose databases are small."""

from __future__ import annotations

from typing import Final, NamedTuple

from django_jobqueue.arguments import from_json
from django_jobqueue.store.connection import Database
from django_jobqueue.store.find import ARCHIVED, QUEUED, job_of
from django_jobqueue.store.rows import Job

ENQUEUED: Final = f"{QUEUED} UNION ALL {ARCHIVED} ORDER BY id"
TAGS: Final = """
SELECT id, tags::text FROM jobqueue_queuedjob WHERE tags IS NOT NULL
UNION ALL
SELECT id, tags::text FROM jobqueue_archivedjob WHERE tags IS NOT NULL
"""


class Enqueued(NamedTuple):
    """A job as it is now."""

    job: Job
    tags: list[str]


def enqueued(db: Database) -> list[Enqueued]:
    """All jobs, waiting, running and over, in the order in which they were made."""
    tags = {id: from_json(text) for id, text in db.fetch(TAGS)}
    jobs = [job_of(row) for row in db.fetch(ENQUEUED)]
    return [Enqueued(job, tags.get(job.id, [])) for job in jobs]
