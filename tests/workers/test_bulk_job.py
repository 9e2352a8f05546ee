"""The job that works a bulk operation off: slices, a stop, an error, a throttle."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from django_jobqueue.exceptions import Fail, InvalidArguments
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from tests.store.rows import ago, archive
from tests.support.hand_driven import HandDriven
from tests.workers.chunk_jobs import Jobs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("small_chunks"),
]

JOBS = Jobs(bulk.WORK, BulkOperation)
job_of, work = JOBS.of, JOBS.work
FAILED = Selection(Table.ARCHIVED, (Term("status", "failed"),))


def archive_failed(count: int) -> None:
    for seconds in range(count, 0, -1):
        archive(status="failed", data={"a": 1}, finished_at=ago(seconds + 5_000))


def replaying(count: int, **options: Any) -> UUID:
    archive_failed(count)
    id = bulk.draft("replay", FAILED, **options).id
    assert bulk.start(id)
    return id


def copies() -> int:
    return QueuedJob.objects.exclude(replay_of=None).count()


def test_a_worker_works_it_off(worker: HandDriven) -> None:
    id = replaying(25)
    # They were too many to be counted for the draft.
    BulkOperation.objects.update(total=None, counted=None)
    worker.work()
    row = BulkOperation.objects.get()
    assert (row.state, row.total, row.seen, row.changed) == ("done", 25, 25, 25)
    job = ArchivedJob.objects.get(id=row.job_id)
    assert (job.status, job.attempts) == ("succeeded", 1)
    made = ArchivedJob.objects.filter(bulk_operation_id=id)
    assert made.count() == 25  # and they ran


@pytest.fixture
def _slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no time to count while a draft is made."""
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)


def drafted(count: int) -> UUID:
    archive_failed(count)
    return bulk.draft("replay", FAILED).id


@pytest.mark.usefixtures("_slow")
def test_a_draft_of_many_jobs_is_counted_by_a_worker(worker: HandDriven) -> None:
    id = drafted(25)
    assert bulk.get(id).total is None
    worker.work()
    assert bulk.get(id).total == 25
    assert copies() == 0
    assert bulk.start(id)
    worker.work()
    assert BulkOperation.objects.get().changed == 25


@pytest.mark.usefixtures("_slow")
def test_a_draft_that_is_started_or_discarded_is_counted_no_further() -> None:
    counting = job_of(id := drafted(20))
    bulk.stop(id)
    work(id, job=counting)
    assert bulk.get(id).total is None

    id = drafted(0)
    counting = job_of(id)
    bulk.start(id)
    work(id, job=counting)
    assert (bulk.get(id).state, copies()) == ("queued", 0)
    assert bulk.get(id).total is None  # the other job counts it


def test_a_paused_operation_ends_its_job_and_keeps_its_place() -> None:
    id = replaying(5)
    old = job_of(id)
    bulk.WORK.do_chunk(id, max_rows=2)
    bulk.pause(id)
    work(id)
    row = BulkOperation.objects.get()
    assert (row.state, row.changed) == ("paused", 2)
    bulk.resume(id)
    work(id, job=old)  # it was succeeded by another one, and does nothing more
    assert copies() == 2
    work(id)
    assert copies() == 5


def test_a_rate_is_kept_without_keeping_a_slot() -> None:
    id = replaying(25, per_minute=600)
    before = timezone.now()
    clock = work(id)
    assert copies() == 10
    assert all(pause < 0.5 for pause in clock.rests)
    job = QueuedJob.objects.get(id=BulkOperation.objects.get().job_id)
    assert job.run_after > before + timedelta(seconds=0.8)
    work(id)
    assert copies() == 20
    work(id)
    assert copies() == 25
    assert BulkOperation.objects.get().state == "done"


def test_an_error_is_kept_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    id = replaying(3)

    def broken(*args: Any, **kwargs: Any) -> None:
        raise ValueError("no luck, password=hunter2")

    with monkeypatch.context() as patch:
        patch.setattr(bulk.WORK, "do_chunk", broken)
        with pytest.raises(Fail, match="ValueError: no luck"):
            work(id)
    row = BulkOperation.objects.get()
    assert row.state == "failed"
    assert row.error == "ValueError: no luck, password=••••"
    bulk.resume(id)
    work(id)
    assert copies() == 3


@pytest.mark.usefixtures("_slow")
def test_a_draft_that_is_discarded_while_it_is_counted_ends_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    id = drafted(1)
    count = bulk.WORK.do_chunk

    def count_then_discard(*args: Any, **options: Any) -> Any:
        done = count(*args, **options)
        bulk.discard(id)
        return done

    monkeypatch.setattr(bulk.WORK, "do_chunk", count_then_discard)
    work(id)
    assert not BulkOperation.objects.exists()


@pytest.mark.usefixtures("_slow")
def test_one_person_has_ten_operations_at_once() -> None:
    ids = [bulk.draft("replay", FAILED, by="anna").id for _ in range(10)]
    with pytest.raises(InvalidArguments, match="At most 10 bulk operations"):
        bulk.draft("replay", FAILED, by="anna")
    bulk.draft("replay", FAILED, by="bert")
    bulk.draft("replay", FAILED, by="anna", here=True)  # no worker counts it
    assert bulk.start(ids[0], by="anna")  # one of the ten
    bulk.stop(ids[1])
    more = bulk.draft("replay", FAILED, by="anna", by_worker=False)
    assert bulk.start(more.id, by="anna")
    waits = bulk.draft("replay", FAILED, by="anna", here=True)
    with pytest.raises(InvalidArguments, match="At most 10"):
        bulk.start(waits.id, by="anna")
    assert bulk.start(waits.id, by="anna", here=True)


@pytest.mark.usefixtures("_slow")
def test_what_somebody_began_goes_before_all_but_the_first_of_others() -> None:
    ids = [bulk.draft("replay", FAILED, by="anna").id for _ in range(3)]
    ids.append(bulk.draft("replay", FAILED, by="bert").id)

    def priorities() -> list[int]:
        return [QueuedJob.objects.get(id=bulk.get(id).job_id).priority for id in ids]

    assert priorities() == [50, 49, 48, 50]
    for id in ids:
        bulk.start(id)
    assert priorities() == [-50, -51, -52, -50]


@pytest.mark.usefixtures("_slow")
def test_two_jobs_of_the_queue_itself_run_at_once(worker: HandDriven) -> None:
    for _ in range(3):
        bulk.draft("replay", FAILED)
    worker.claim()
    assert worker.held == 2


@pytest.mark.usefixtures("_slow")
def test_a_draft_that_was_discarded_is_nothing_to_do(worker: HandDriven) -> None:
    bulk.discard(drafted(1))
    worker.work()
    assert not BulkOperation.objects.exists()
    job = ArchivedJob.objects.get(job_type_id="jobqueue.bulk")
    assert (job.status, job.attempts) == ("succeeded", 1)
