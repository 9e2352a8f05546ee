"""Progress: how far jobs are, in one read, by keys alone."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection

from django_jobqueue.models import Report
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.reading import progress
from tests.store.meanwhile import open_transaction
from tests.store.plans import Plan, plan_of
from tests.store.rows import ADD, archive, make

MANY = 5_000

ARCHIVE = """
INSERT INTO jobqueue_archivedjob (job_type, status)
SELECT %(job_type)s, 'succeeded' FROM generate_series(1, %(count)s)
"""
REPORT = """
INSERT INTO jobqueue_report (job_id, fence, number, done)
SELECT id, fence, fence, fence
  FROM jobqueue_archivedjob, generate_series(1, 3) AS fence
"""


@pytest.fixture
def history(transactional_db: None) -> list[UUID]:
    """A few of many archived jobs with three reports each."""
    with connection.cursor() as cursor:
        cursor.execute(ARCHIVE, {"job_type": ADD, "count": MANY})
        cursor.execute(REPORT)
        cursor.execute("ANALYZE jobqueue_archivedjob, jobqueue_report")
        cursor.execute("SELECT id FROM jobqueue_archivedjob ORDER BY id LIMIT 50")
        return [id for (id,) in cursor.fetchall()]


def test_a_page_of_jobs_is_read_by_key(own: OwnConnection, history: list[UUID]) -> None:
    found = progress.progress(own, history)
    assert {one.done for one in found.values()} == {3.0}
    plan = plan_of(own, progress.PROGRESS, {"ids": history})
    assert plan.lookups("jobqueue_archivedjob") == {"jobqueue_archivedjob_pkey"}
    assert plan.indexes("jobqueue_report") == {"jobqueue_report_attempt"}
    assert plan.rows("jobqueue_archivedjob") == len(history)
    assert plan.rows("jobqueue_report") <= 3 * len(history)
    # Through Django, too.
    with connection.cursor() as cursor:
        explain = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + progress.PROGRESS
        cursor.execute(explain, {"ids": history})
        (((found,),),) = cursor.fetchall()
    plan = Plan(found["Plan"])
    assert plan.lookups("jobqueue_archivedjob") == {"jobqueue_archivedjob_pkey"}
    assert plan.indexes("jobqueue_report") == {"jobqueue_report_attempt"}


def test_a_job_that_is_archived_meanwhile_is_there_all_the_time(
    own: OwnConnection, other: OwnConnection
) -> None:
    id = make(status="running", fence=1)
    with open_transaction(other) as transaction:
        transaction.run("DELETE FROM jobqueue_queuedjob")
        transaction.run(
            "INSERT INTO jobqueue_archivedjob (id, job_type, status) "
            "VALUES (%(id)s, %(job_type)s, 'succeeded')",
            {"id": id, "job_type": ADD},
        )
        assert progress.progress(own, [id])[id].status == "running"
    assert progress.progress(own, [id])[id].status == "succeeded"


def test_an_id_used_again_is_the_archived_jobs(own: OwnConnection) -> None:
    id = make()
    archive(id=id)
    assert progress.progress(DjangoDatabase(), [id])[id].status == "succeeded"


def test_who_reads_waits_for_no_writer(
    own: OwnConnection, other: OwnConnection
) -> None:
    id = make(status="running", fence=1)
    Report.objects.create(job_id=id, fence=1, number=1, done=1)
    with open_transaction(other) as transaction:
        transaction.run("UPDATE jobqueue_report SET done = 2")
        assert progress.progress(own, [id])[id].done == 1.0
