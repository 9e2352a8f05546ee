"""How far jobs are, for code: wherever they are, in one query."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.utils import timezone, translation

from django_jobqueue import InvalidArguments, JobNotFound
from django_jobqueue.models import Report
from django_jobqueue.progress import (
    Progress,
    aprogress_of,
    aprogress_of_many,
    progress_of,
    progress_of_many,
)
from tests.admin import scene as rows
from tests.progress.rows import running, told
from tests.sample import jobs

pytestmark = pytest.mark.django_db


def made(**columns: Any) -> Progress:
    """How far some job is, without a database."""
    given = {"status": "running", "attempt": 1, "since": timezone.now(), **columns}
    return Progress(id=uuid4(), job_type="shop.send", **given)


def test_a_job_that_waits_is_not_begun() -> None:
    job = jobs.add.enqueue(1, 2)
    found = progress_of(job.id)
    assert (found.id, found.job_type) == (job.id, "tests.sample.add")
    assert (found.status, found.attempt, found.is_over) == ("queued", 0, False)
    assert (found.done, found.total, found.fraction) == (None, None, None)
    assert (found.note, found.text, found.updated_at) == ("", "", None)
    assert found.since == job.run_after


def test_a_running_job_is_as_far_as_it_told() -> None:
    id = running()
    row = told(id, done=30, total=120, note="resizing")
    found = progress_of(str(id))
    assert (found.status, found.attempt, found.is_over) == ("running", 1, False)
    assert (found.done, found.total, found.note) == (30.0, 120.0, "resizing")
    assert (found.fraction, found.percent) == (0.25, 25)
    assert found.text == "30 of 120 (25 %)"
    row.refresh_from_db()
    assert found.updated_at == row.updated_at


def test_what_an_earlier_attempt_told_is_not_how_far_a_running_one_is() -> None:
    id = running(fence=9)
    told(id, fence=4, done=90, total=100)
    assert progress_of(id).done is None
    told(id, fence=9, done=1, total=100)
    assert progress_of(id).done == 1.0


def test_a_job_that_waits_for_its_next_attempt_is_as_far_as_the_last_one() -> None:
    id = rows.queued(attempts=2, fence=9)
    told(id, fence=4, done=10, total=100)
    told(id, fence=9, done=70, total=100)
    assert progress_of(id).done == 70.0


def test_a_job_that_succeeded_is_done_whatever_it_told() -> None:
    id = rows.archived(attempts=1)
    assert (progress_of(id).fraction, progress_of(id).percent) == (1.0, 100)
    told(id, done=97, total=100)
    found = progress_of(id)
    assert (found.is_over, found.fraction, found.text) == (
        True,
        1.0,
        "97 of 100 (97 %)",
    )


def test_a_job_that_failed_stays_where_it_was() -> None:
    id = rows.archived(status="failed", attempts=1)
    told(id, done=40, total=100)
    found = progress_of(id)
    assert (found.status, found.is_over, found.fraction) == ("failed", True, 0.4)


def test_since_is_the_start_of_what_the_job_is_now() -> None:
    hour = timezone.now() - timedelta(hours=1)
    assert progress_of(running(started_at=hour)).since == hour
    assert progress_of(rows.queued(run_after=hour)).since == hour
    assert progress_of(rows.archived(finished_at=hour)).since == hour


def test_many_jobs_take_one_query(django_assert_num_queries: Any) -> None:
    ids = [running(), rows.archived(), rows.queued()]
    for number, id in enumerate(ids):
        told(id, done=number, total=10)
    gone = uuid4()
    with django_assert_num_queries(1):
        found = progress_of_many([*ids, gone])
    assert [found[id].done for id in ids] == [0.0, 1.0, 2.0]
    assert gone not in found
    with django_assert_num_queries(0):
        assert progress_of_many([]) == {}
    with django_assert_num_queries(1):
        progress_of(ids[0])


def test_async_code_asks_the_same() -> None:
    id = running()
    told(id, done=1, total=2)
    found = progress_of(id)
    assert async_to_sync(aprogress_of)(id) == found
    assert async_to_sync(aprogress_of_many)([id]) == {id: found}


def test_a_job_that_is_not_kept_is_not_found() -> None:
    with pytest.raises(JobNotFound):
        progress_of(uuid4())
    with pytest.raises(InvalidArguments):
        progress_of("seven")


def test_numbers_that_plain_sql_wrote_and_json_does_not_have_are_none() -> None:
    id = running()
    told(id)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobqueue_report SET done = 'NaN', total = 'Infinity'")
    assert (progress_of(id).done, progress_of(id).total) == (None, None)


@pytest.mark.parametrize(
    ("done", "total", "percent", "text"),
    [
        (None, None, None, ""),
        (None, 7, None, ""),
        (3, None, None, "3"),
        (0, 0, None, "0"),
        (0, 3, 0, "0 of 3 (0 %)"),
        (29, 100, 29, "29 of 100 (29 %)"),
        (199, 200, 99, "199 of 200 (99 %)"),
        (200, 200, 100, "200 of 200 (100 %)"),
        (9, 7, 100, "9 of 7 (100 %)"),
        (-1, 7, 0, "-1 of 7 (0 %)"),
        (1, -7, None, "1"),
        (0.456, 1.5, 30, "0.46 of 1.5 (30 %)"),
        (1234567, 2000000, 61, "1,234,567 of 2,000,000 (61 %)"),
    ],
)
def test_it_reads_as_people_say_it(
    done: float | None, total: float | None, percent: int | None, text: str
) -> None:
    found = made(done=done, total=total)
    assert (found.percent, found.text) == (percent, text)
    if percent is None:
        assert found.fraction is None
    else:
        assert found.fraction is not None
        assert 0 <= found.fraction <= 1


def test_it_reads_as_people_say_it_in_german() -> None:
    with translation.override("de"):
        assert made(done=1234, total=2000).text == "1.234 von 2.000 (61 %)"


def test_the_latest_reports_of_jobs_are_a_queryset(
    django_assert_num_queries: Any,
) -> None:
    first, second = running(), running()
    told(first, fence=1, done=1)
    told(first, fence=7, done=2)
    told(second, fence=3, done=3)
    told(running(), fence=3, done=4)
    with django_assert_num_queries(1):
        found = list(Report.objects.latest_for([first, second]))
    assert {report.job_id: report.done for report in found} == {first: 2.0, second: 3.0}
