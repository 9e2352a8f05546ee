"""A worker in the test's own process."""

from __future__ import annotations

import pytest
from django.db import connection

import django_jobqueue
from django_jobqueue.models import Worker
from tests.conftest import archived, eventually
from tests.sample import jobs

pytestmark = pytest.mark.django_db(transaction=True)


def own_connections() -> list[str]:
    """The names of the machinery's connections to this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return [name for (name,) in cursor.fetchall()]


def test_jobs_run_while_the_block_lasts() -> None:
    with django_jobqueue.worker(threads=2, async_slots=2) as worker:
        ids = {jobs.add.enqueue(1, 2).id, jobs.aadd.enqueue(1, 2).id}
        worker.wait_idle()
        assert {job.id for job in archived(status="succeeded")} == ids
        (row,) = Worker.objects.all()
        assert (row.name, row.state) == (worker.name, "running")
    row.refresh_from_db()
    assert (row.state, row.end) == ("stopped", "ended")
    eventually(lambda: own_connections() == [], what=str(own_connections()))
