"""The job that carries on a search through all jobs: slices, a stop, an error."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import OwnConnection
from tests.store import rows
from tests.store.rows import ADD, ago, make_many
from tests.support.hand_driven import HandDriven
from tests.workers.chunk_jobs import Jobs

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("small_chunks"),
]

JOBS = Jobs(job_searches.WORK, JobSearch)
job_of, work = JOBS.of, JOBS.work
ORDER = Term("data", 7, path=("order",))
BOTH = {table: Selection(table, (ORDER,)) for table in Table}


def archive(count: int, order: int, *, seconds: int = 0, **columns: Any) -> list[UUID]:
    """Insert archived jobs with this order, the newest first; returns their ids."""
    return [
        rows.archive(
            data={"order": order}, finished_at=ago(seconds + number), **columns
        )
        for number in range(count)
    ]


def searching(selections: Any = None, **more: Any) -> UUID:
    return job_searches.start("data.order:7", selections or BOTH, **more)


def finish(id: UUID, max_rows: int = 100) -> JobSearch:
    for _ in range(1_000):
        done = job_searches.WORK.do_chunk(id, max_rows=max_rows)
        if done is None or done.over:
            return JobSearch.objects.get(pk=id)
    raise AssertionError("the search found no end")


def test_a_worker_finds_all_that_match_in_both_tables(worker: HandDriven) -> None:
    archive(25, 1)
    old = archive(3, 7, seconds=1_000)
    archive(25, 2, seconds=2_000)
    make_many(5, run_after=ago(-9_999))
    QueuedJob.objects.update(data={"order": 3})
    waiting = QueuedJob.objects.latest("id")
    QueuedJob.objects.filter(pk=waiting.pk).update(data={"order": "7"})
    id = searching(by="anna")
    worker.work()
    row = JobSearch.objects.get(pk=id)
    assert (row.state, row.created_by, row.error) == ("done", "anna", "")
    assert row.matched == {"queued": 1, "archived": 3}
    assert row.newest == {
        "queued": [str(waiting.pk)],
        "archived": [str(one) for one in old],
    }
    # The job that searches is one of the queue.
    assert row.examined == 53 + 6
    assert ArchivedJob.objects.get(id=row.job_id).status == "succeeded"


def test_chunks_of_any_size_examine_each_job_once() -> None:
    expected = archive(4, 7) + archive(4, 1, seconds=10)
    ArchivedJob.objects.update(finished_at=ago(100))  # the id alone tells them apart
    wanted = sorted((str(one) for one in expected[:4]), reverse=True)
    for max_rows in (1, 2, 7, 50):
        row = finish(searching({Table.ARCHIVED: BOTH[Table.ARCHIVED]}), max_rows)
        assert (row.examined, row.matched) == (8, {"archived": 4})
        assert row.newest == {"archived": wanted}


def test_an_index_spares_the_jobs_of_others() -> None:
    archive(30, 7)
    failed = archive(3, 7, seconds=10_000, status="failed")
    archive(2, 1, seconds=20_000, status="failed")
    is_failed = Term("status", "failed")
    for terms in (
        (is_failed, ORDER),
        (Term("type", ADD), is_failed, ORDER),
        (Term("finished", ago(5_000), "<"), ORDER),
    ):
        row = finish(searching({Table.ARCHIVED: Selection(Table.ARCHIVED, terms)}))
        assert row.examined == 5
        assert row.newest["archived"] == [str(one) for one in failed]


def test_no_more_ids_are_kept_than_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_searches, "MOST_NOTED", 5)
    newest = archive(12, 7)[:5]
    row = finish(searching({Table.ARCHIVED: BOTH[Table.ARCHIVED]}), 4)
    assert row.matched == {"archived": 12}
    assert row.newest == {"archived": [str(one) for one in newest]}


def test_a_job_that_is_archived_after_the_queue_was_searched_is_found() -> None:
    id = searching()
    job_searches.WORK.do_chunk(id, max_rows=100)
    moved = archive(1, 7)
    row = finish(id)
    assert row.newest["archived"] == [str(moved[0])]


def test_a_stop_ends_it_and_keeps_what_it_found() -> None:
    archive(10, 7)
    id = searching({Table.ARCHIVED: BOTH[Table.ARCHIVED]})
    job_searches.WORK.do_chunk(id, max_rows=4)
    assert job_searches.stop(id)
    assert not job_searches.stop(id)
    assert job_searches.WORK.do_chunk(id, max_rows=4) is None
    row = JobSearch.objects.get()
    assert (row.state, row.examined, row.matched) == ("stopped", 4, {"archived": 4})
    work(id)  # its job finds nothing to do
    assert JobSearch.objects.get().examined == 4


def test_one_person_has_a_few_searches_at_once_and_none_of_everything() -> None:
    ids = [searching(by="anna") for _ in range(job_searches.MOST_ACTIVE)]
    with pytest.raises(InvalidArguments):
        searching(by="anna")
    searching(by="bert")
    job_searches.stop(ids[0])
    searching(by="anna")
    count = JobSearch.objects.count()
    for selections in ({Table.ARCHIVED: Selection(Table.ARCHIVED).none()}, {}):
        with pytest.raises(InvalidArguments):
            job_searches.start("", selections)
    assert JobSearch.objects.count() == count


def test_searches_are_deleted_after_a_week(own: OwnConnection) -> None:
    old, new = searching(), searching()
    JobSearch.objects.filter(pk=old).update(created_at=ago(8 * 86_400))
    JobSearch.objects.filter(pk=new).update(created_at=ago(6 * 86_400))
    job_searches.drop(own)
    assert [row.pk for row in JobSearch.objects.all()] == [new]
    assert job_searches.get(new).examined == 0
    with pytest.raises(LookupError):
        job_searches.get(old)
