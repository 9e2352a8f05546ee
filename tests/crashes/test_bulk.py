"""kill -9 of workers in the middle of a bulk operation: nothing is lost, and nothing
is done twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.models import Count
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, BulkOperation, Failure, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from tests.crashes.seen import LEASE, kill
from tests.store.rows import ADD
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
JOBS = 200
PER_MINUTE = 40 * JOBS  # so that its middle is long enough to be seen
SMALL_STEPS = {**BRISK, "domain.chunk_throttle.TICK": 0.05}
FLAGS = ("--threads", "2", *LEASE)
FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))
ARCHIVE = """
INSERT INTO jobqueue_archivedjob (id, job_type, status, finished_at)
SELECT jobqueue_uuidv7(), %s, 'failed', now() - n * interval '1 second'
  FROM generate_series(1, %s) AS n
"""


def replay() -> None:
    with connection.cursor() as cursor:
        cursor.execute(ARCHIVE, [ADD, JOBS])
    later = timezone.now() + timedelta(days=1)
    draft = bulk.draft("replay", FAILED, run_after=later, per_minute=PER_MINUTE)
    assert bulk.start(draft.id)


def has_changed(part: float) -> bool:
    return BulkOperation.objects.get().changed >= part * JOBS


def is_in_the_middle() -> bool:
    return 0 < BulkOperation.objects.get().changed < JOBS


def test_a_kill_and_a_stop_in_the_middle_lose_nothing_and_repeat_nothing(
    runworkers: Run,
) -> None:
    run = runworkers(*FLAGS, "--grace", "0", constants=SMALL_STEPS)
    (pid,) = run.started()
    replay()
    eventually(partial(has_changed, 0.2))
    kill(pid)
    assert is_in_the_middle()
    eventually(partial(has_changed, 0.5))
    run.stop()
    assert is_in_the_middle()
    row = BulkOperation.objects.get()
    assert row.state == "running"
    assert QueuedJob.objects.filter(pk=row.job_id, status="queued").exists()
    runworkers(*FLAGS, constants=SMALL_STEPS)
    eventually(lambda: BulkOperation.objects.get().state == "done", within=60)

    row = BulkOperation.objects.get()
    assert (row.total, row.seen, row.changed) == (JOBS, JOBS, JOBS)
    assert row.skipped == {}
    made = QueuedJob.objects.filter(bulk_operation_id=row.pk)
    assert made.count() == JOBS
    twice = made.values("replay_of").annotate(n=Count("id")).filter(n__gt=1)
    assert not twice.exists()
    reasons = Failure.objects.filter(job_type="jobqueue.bulk", end="crashed")
    assert {failure.reason for failure in reasons} == {"killed by signal 9 (SIGKILL)"}
    its_job = ArchivedJob.objects.filter(job_type_id="jobqueue.bulk", crashes=1)
    ended = eventually(its_job.first)
    assert ended.status == "succeeded"
