"""Rows that a test starts from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils import timezone

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.queue import claim, insert
from django_jobqueue.store.queue.lanes import LaneMark
from django_jobqueue.store.rows import ClaimedJob, Lane
from django_jobqueue.store.worker_rows import NewWorker

ADD = "tests.sample.add"
FAIL = "tests.sample.fail"
LIMITED = "tests.sample.write_limited"  # two at a time
KEYED = "tests.sample.write_keyed"  # two of each key
ONCE = "tests.sample.write_once"  # at most once


def forget_job_types() -> None:
    """As when what enqueues looked up of them, and of who is idle, holds no longer."""
    insert._known.clear()  # private: time would have to pass


def ago(seconds: float) -> datetime:
    """A moment in the past; negative: in the future."""
    return timezone.now() - timedelta(seconds=seconds)


def lane(job_type: str = ADD, queue: str = "default", priority: int = 0) -> LaneMark:
    """A lane from its beginning."""
    return LaneMark(Lane(queue, priority, job_type))


def make(job_type: str = ADD, **columns: Any) -> UUID:
    """Insert a queued job; what is not given is the database's default."""
    made: UUID = QueuedJob.objects.create(job_type_id=job_type, **columns).id
    return made


def make_many(count: int, job_type: str = ADD, **columns: Any) -> list[UUID]:
    """Insert queued jobs, due one millisecond after the other."""
    first = columns.pop("run_after", None) or ago(60)
    made = QueuedJob.objects.bulk_create(
        QueuedJob(
            id=new_id(),
            job_type_id=job_type,
            run_after=first + timedelta(milliseconds=number),
            **columns,
        )
        for number in range(count)
    )
    return [job.id for job in made]


def archive(job_type: str = ADD, status: str = "succeeded", **columns: Any) -> UUID:
    """Insert an archived job. Its id is greater than those before; the database's own
    of one millisecond are in any order before PostgreSQL 18."""
    columns = {"id": new_id(), **columns}
    made: UUID = ArchivedJob.objects.create(
        job_type_id=job_type, status=status, **columns
    ).id
    return made


def enqueue_keys(keys: str, **columns: Any) -> None:
    """A job for each letter, in this order, which is its key."""
    for number, key in enumerate(keys):
        due = {"run_after": ago(60 - number / 1_000), **columns}
        make(KEYED, data={"journal": "/dev/null", "key": key}, **due)


def job_type(name: str, **columns: Any) -> str:
    """Insert a job type that no code declares, or change one that it does."""
    JobType.objects.update_or_create(name=name, defaults=columns)
    return name


def register(db: Database, name: str = "host:1", **values: Any) -> int:
    """Insert the row of a worker that is alive; returns its id."""
    values.setdefault("lease", 3_600.0)  # seconds; longer than any test takes
    lease = values.pop("lease")
    new = NewWorker(
        **{
            "name": name,
            "host": "host",
            "pid": 1,
            "identity": "boot:1:1",
            "supervisor": "host:0",
            "release": "r1",
            "queues": None,
            "job_types": [ADD],
            "threads": 4,
            "async_slots": 0,
            "versions": {},
            **values,
        }
    )
    return worker_rows.register(db, new, lease)


def claimed(
    db: OwnConnection, worker: int, count: int = 1, *lanes: LaneMark
) -> list[ClaimedJob]:
    """Claim jobs, which must be there."""
    jobs = claim.claim(db, worker, list(lanes) or [lane()], count)
    assert len(jobs) == count
    return sorted(jobs, key=lambda job: (job.run_after, job.id))


def ids(jobs: Sequence[ClaimedJob]) -> set[UUID]:
    """The ids of claimed jobs."""
    return {job.id for job in jobs}


def queued_job(id: UUID) -> QueuedJob | None:
    """The queued job with this id."""
    return QueuedJob.objects.filter(id=id).first()


def archived_job(id: UUID) -> ArchivedJob | None:
    """The archived job with this id."""
    return ArchivedJob.objects.filter(id=id).first()


def running(db: Database, job_type: str) -> int:
    """How many jobs of this type run, as this connection sees it."""
    rows = db.fetch(
        "SELECT count(*) FROM jobqueue_queuedjob "
        "WHERE status = 'running' AND job_type = %(job_type)s",
        {"job_type": job_type},
    )
    count: int = rows[0][0]
    return count


def most_in_a_window(moments: list[datetime], window: timedelta) -> int:
    """The greatest number of these moments in any window of this length."""
    return max(
        sum(1 for at in moments if first <= at < first + window) for first in moments
    )
