"""A verb on a waiting job meets the claim of that job: the claim wins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.store.connection import Database, OwnConnection
from django_jobqueue.store.control.edit import edit
from django_jobqueue.store.control.fail import fail
from django_jobqueue.store.control.more_attempts import allow
from django_jobqueue.store.control.reschedule import reschedule
from django_jobqueue.store.queue.expire import expire
from tests.store.meanwhile import Background, open_transaction, waiting
from tests.store.rows import ago, make
from tests.support.waiting import eventually

CLAIM = """
UPDATE jobqueue_queuedjob
   SET status = 'running', worker_id = %(worker)s, started_at = clock_timestamp(),
       fence = fence + 1, attempts = attempts + 1
 WHERE id = %(id)s
"""


def _edited(db: Database, id: UUID) -> bool:
    edited = edit(db, id, '{"a": 5}', None)
    return edited is not None and edited.is_done


# Each returns something true if it changed the job.
VERBS: dict[str, Callable[[Database, UUID], object]] = {
    "fail": lambda db, id: fail(db, [id], reason="not wanted"),
    "allow attempts": lambda db, id: allow(db, [id], 9),
    "edit": _edited,
    "reschedule": lambda db, id: reschedule(db, [id], priority=9),
    "run now": lambda db, id: reschedule(db, [id], now=True),
    "expire": lambda db, id: expire(db),
}


def test_a_job_that_is_claimed_meanwhile_is_left_to_its_handler(
    own: OwnConnection, other: OwnConnection, holder: int, background: Background
) -> None:
    for verb in VERBS.values():
        QueuedJob.objects.all().delete()
        id = make(data={"a": 1}, expires_at=ago(1))
        with open_transaction(other) as transaction:
            transaction.run(CLAIM, {"worker": holder, "id": id})
            changing = background(partial(verb, own, id))
            # A verb passes over the job, or waits and then sees that it runs.
            eventually(lambda: changing.done() or waiting())  # noqa: B023
        claimed = QueuedJob.objects.values().get()
        assert not changing.result(30)
        assert QueuedJob.objects.values().get() == claimed
        assert (claimed["status"], claimed["worker_id"]) == ("running", holder)
        assert not ArchivedJob.objects.exists()


def test_a_job_that_nobody_claims_is_changed(own: OwnConnection) -> None:
    for verb in VERBS.values():
        assert verb(own, make(data={"a": 1}, expires_at=ago(1)))
        QueuedJob.objects.all().delete()
