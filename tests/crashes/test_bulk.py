"""kill -9 of workers in the middle of a bulk operation: nothing is lost, and nothing
is done twice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Count
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, BulkOperation, Failure, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from tests.crashes.test_kills import kill
from tests.store.rows import ADD
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
JOBS = 40_000
PER_MINUTE = 20 * JOBS  # so that its middle is long enough to be seen
LEASE = ("--lease", "60", "--threads", "2")
FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))
ARCHIVE = """
INSERT INTO jobqueue_archivedjob (id, job_type, status, finished_at)
SELECT jobqueue_uuidv7(), %s, 'failed', now() - n * interval '1 second'
  FROM generate_series(1, %s) AS n
"""


def replaying() -> None:
    """Start to replay many jobs, which are to run much later."""
    with connection.cursor() as cursor:
        cursor.execute(ARCHIVE, [ADD, JOBS])
    later = timezone.now() + timedelta(days=1)
    draft = bulk.draft("replay", FAILED, run_after=later, per_minute=PER_MINUTE)
    assert bulk.start(draft.id)


def changed() -> int:
    return BulkOperation.objects.get().changed


def each_was_replayed_once() -> None:
    """What is there, against what there should be."""
    row = BulkOperation.objects.get()
    assert (row.total, row.seen, row.changed) == (JOBS, JOBS, JOBS)
    assert row.skipped == {}
    made = QueuedJob.objects.filter(bulk_operation_id=row.pk)
    assert made.count() == JOBS
    twice = made.values("replay_of").annotate(n=Count("id")).filter(n__gt=1)
    assert not twice.exists()


def over(state: str = "done") -> Callable[[], bool]:
    return lambda: BulkOperation.objects.get().state == state


def test_a_kill_in_the_middle_loses_nothing_and_repeats_nothing(
    runworkers: Run,
) -> None:
    run = runworkers(*LEASE)
    killed = set()
    (pid,) = run.started()
    replaying()
    for part in (1, 3):
        eventually(lambda part=part: changed() >= part * JOBS // 8)
        kill(pid)
        killed.add(pid)
        assert 0 < changed() < JOBS
        (pid,) = eventually(lambda: set(run.workers()) - killed)
    eventually(over(), within=60)
    each_was_replayed_once()
    reasons = Failure.objects.filter(job_type="jobqueue.bulk")
    assert {failure.reason for failure in reasons} == {"killed by signal 9 (SIGKILL)"}
    its_job = ArchivedJob.objects.filter(job_type_id="jobqueue.bulk", crashes=2)
    ended = eventually(its_job.first)
    assert ended.status == "succeeded"


def test_a_stop_in_the_middle_ends_no_operation(runworkers: Run) -> None:
    run = runworkers(*LEASE, "--grace", "0")
    run.started()
    replaying()
    eventually(lambda: changed() > 0)
    run.stop()
    assert 0 < changed() < JOBS
    row = BulkOperation.objects.get()
    assert row.state == "running"
    assert QueuedJob.objects.filter(pk=row.job_id, status="queued").exists()
    runworkers(*LEASE)
    eventually(over(), within=60)
    each_was_replayed_once()
