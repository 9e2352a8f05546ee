"""What all work in chunks has in common: another job goes on, an error, a stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from django.db import OperationalError
from psycopg import errors

from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.console.models import JobSearch
from django_jobqueue.contrib.privacy import personal_data
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.domain.ids import new_id
from django_jobqueue.exceptions import Cancel, Fail, Retry
from django_jobqueue.models import BulkOperation, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.operations.chunked_work import ChunkedWork
from django_jobqueue.search.selection import Selection, Table, Term
from tests.store.rows import ADD, ago, archive
from tests.support.refusing_rows import NO, refused
from tests.workers.chunk_jobs import SHORT, Jobs, cancelled

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("small_chunks"),
]

MAIL = "anna@example.com"
HOLDS = Selection(Table.ARCHIVED, (Term("data", MAIL, path=("to",)),))


def replaying() -> UUID:
    id = bulk.draft("replay", HOLDS).id
    assert bulk.start(id)
    return id


def erasing() -> UUID:
    id = personal_data.find(MAIL).id
    assert personal_data.start(id, "erase")
    return id


def searching() -> UUID:
    return job_searches.start("", {Table.ARCHIVED: HOLDS})


class Sort(NamedTuple):
    """One sort of work."""

    work: ChunkedWork[Any]
    model: Any
    start: Callable[[], UUID]
    priority: int

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.work, self.model)

    @property
    def row(self) -> Any:
        return self.model.objects.get()


SORTS = {
    "bulk": Sort(bulk.WORK, BulkOperation, replaying, -50),
    "erasure": Sort(personal_data.WORK, Erasure, erasing, -50),
    "search": Sort(job_searches.WORK, JobSearch, searching, 50),
}


@pytest.fixture(params=SORTS)
def sort(request: pytest.FixtureRequest) -> Sort:
    """Each sort, and jobs for it."""
    archive_failed()
    return SORTS[request.param]


def archive_failed() -> None:
    for seconds in range(25):
        archive(ADD, "failed", data={"to": MAIL}, finished_at=ago(5_000 - seconds))


def of_the_queue() -> Any:
    return QueuedJob.objects.filter(job_type_id="jobqueue.bulk")


def work_of_the_queue() -> Any:
    """The one job that is there for it."""
    return of_the_queue().get()


def test_a_row_that_is_refused_at_the_commit_keeps_no_other_from_its_change() -> None:
    """As one that a foreign key of the project refers to."""
    for data in (NO, {}, {}):
        # Of younger ones it asks whether a transaction is older, also a test's beside.
        archive(ADD, "failed", data=data, finished_at=ago(2 * 86_400))
    id = bulk.draft("prune", Selection(Table.ARCHIVED)).id
    assert bulk.start(id)
    with refused("DELETE", "jobqueue_archivedjob", at_commit=True):
        bulk.WORK.do_chunk(id, max_rows=100)
    row = BulkOperation.objects.get()
    assert (row.state, row.changed, row.skipped) == ("done", 2, {"refused": 1})


def test_when_its_time_is_over_another_job_goes_on(sort: Sort) -> None:
    id = sort.start()
    jobs = [sort.row.job_id]
    while sort.row.state in ("queued", "running"):
        assert work_of_the_queue().priority == sort.priority
        sort.jobs.work(id, SHORT)
        QueuedJob.objects.filter(pk=jobs[-1]).delete()  # it has succeeded
        jobs.append(sort.row.job_id)
    assert len(set(jobs)) > 1
    row = sort.row
    assert (row.state, row.error) == ("done", "")
    assert row.started_at < row.progress_at <= row.finished_at


@pytest.mark.parametrize("name", ["bulk", "erasure"])
def test_a_count_goes_on_before_other_jobs(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    archive_failed()
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)
    monkeypatch.setattr(personal_data, "AT_ONCE", 0.0)
    if name == "bulk":
        id = bulk.draft("replay", HOLDS).id
    else:
        id = personal_data.find(MAIL).id
    sort = SORTS[name]
    first = work_of_the_queue().pk
    sort.jobs.work(id, SHORT)
    assert sort.row.job_id != first
    assert {job.priority for job in of_the_queue()} == {50}


def test_a_job_that_was_thought_dead_or_is_cancelled_does_nothing_more(
    sort: Sort,
) -> None:
    id = sort.start()
    before = sort.jobs.of(id)
    with pytest.raises(Cancel):
        sort.jobs.work(id, job=cancelled(sort.jobs.of(id)))
    sort.model.objects.update(job_id=new_id())
    sort.jobs.work(id, job=before)
    row = sort.row
    assert (row.state, row.progress_at, row.error) == ("queued", None, "")


def test_an_error_ends_it_unless_it_passes(
    monkeypatch: pytest.MonkeyPatch, sort: Sort
) -> None:
    id = sort.start()
    for cause, attempt, raised, state in (
        (errors.DeadlockDetected(), 1, Retry, "queued"),
        (errors.AdminShutdown(), 9, Retry, "queued"),
        (errors.AdminShutdown(), 10, Fail, "failed"),
        (errors.CheckViolation(), 1, Fail, "failed"),
    ):
        sort.model.objects.update(state="queued", error="")
        with monkeypatch.context() as patch:
            patch.setattr(sort.work, "do_chunk", raising(cause))
            with pytest.raises(raised) as caught:
                sort.jobs.work(id, attempt=attempt)
        row = sort.row
        assert row.state == state
        assert row.error == (str(caught.value) if state == "failed" else "")
        # An outage may be long: the backoff of the job decides.
        assert getattr(caught.value, "after", None) is None
        if sort.work is not bulk.WORK:
            assert MAIL not in str(caught.value)
            assert caught.value.__context__ is None
    is_resumed = sort.work is not job_searches.WORK
    assert sort.work.resume(id) == is_resumed


def raising(cause: Exception) -> Callable[..., None]:
    def do_chunk(*args: Any, **kwargs: Any) -> None:
        raise OperationalError(f"row ({MAIL})") from cause

    return do_chunk


def test_when_its_job_is_gone_another_one_takes_over(sort: Sort) -> None:
    id = sort.start()
    sort.work.do_chunk(id, max_rows=10)
    assert not sort.work.resume(id)
    first = sort.row.job_id
    QueuedJob.objects.filter(pk=first).delete()
    assert sort.work.is_abandoned(sort.work.get(id))
    assert sort.work.resume(id)
    assert sort.row.job_id == work_of_the_queue().pk != first
    sort.jobs.work(id)
    assert sort.row.state == "done"


def test_what_is_stopped_goes_no_further(sort: Sort) -> None:
    id = sort.start()
    sort.work.do_chunk(id, max_rows=10)
    assert sort.work.stop(id)
    assert not sort.work.stop(id)
    before = sort.row.progress_at
    assert sort.work.do_chunk(id, max_rows=10) is None
    sort.jobs.work(id)
    assert (sort.row.state, sort.row.progress_at) == ("stopped", before)
