"""Projects whose times are local ones, in the night in which an hour comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import patch
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from django_jobqueue import triage
from django_jobqueue.ids import new_id
from django_jobqueue.management.jobqueue import replaying
from django_jobqueue.models import ArchivedJob
from django_jobqueue.selection import Selection, Table
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.triage import bulk_steps
from tests.conftest import queued
from tests.sample import jobs

END_OF_SUMMER = datetime(2026, 10, 25, 1, tzinfo=UTC)  # 02:00 in Berlin, again
MOMENTS = [END_OF_SUMMER + timedelta(minutes=5 * n - 30) for n in range(12)]


@pytest.fixture(autouse=True, params=[False, True], ids=["naive", "local"])
def not_in_utc(
    request: pytest.FixtureRequest, transactional_db: None
) -> Iterator[None]:
    """Django's times have no zone, or have that of the database."""
    connection.close()
    with (
        override_settings(USE_TZ=request.param, TIME_ZONE="Europe/Berlin"),
        patch.dict(
            connection.settings_dict,
            TIME_ZONE="Europe/Berlin" if request.param else None,
        ),
    ):
        vars(connection).pop("timezone", None)
        vars(connection).pop("timezone_name", None)
        yield
        connection.close()
    vars(connection).pop("timezone", None)
    vars(connection).pop("timezone_name", None)


@pytest.fixture
def ended() -> list[UUID]:
    """Jobs that ended one after the other in that night."""
    made = [
        ArchivedJob(
            id=new_id(), job_type_id=jobs.add.name, status="failed", finished_at=moment
        )
        for moment in MOMENTS
    ]
    ArchivedJob.objects.bulk_create(made)
    return [job.id for job in made]


def test_times_are_read_in_utc(ended: list[UUID]) -> None:
    rows = ArchivedJob.objects.order_by("finished_at")
    assert [job.finished_at for job in rows] == MOMENTS
    assert list(rows.values_list("finished_at", flat=True)) == MOMENTS
    assert {job.finished_at.tzinfo for job in rows} == {UTC}
    read = "SELECT finished_at FROM jobqueue_archivedjob ORDER BY finished_at"
    assert [at for (at,) in DjangoDatabase().fetch(read)] == MOMENTS
    with CaptureQueriesContext(connection):
        assert DjangoDatabase().fetch_row(read, {}) == (MOMENTS[0],)


def test_a_bulk_operation_takes_each_job_once(ended: list[UUID]) -> None:
    draft = triage.bulk.draft("replay", Selection(Table.ARCHIVED))
    triage.bulk.start(draft.id)
    while not getattr(bulk_steps.step(draft.id, look=2), "over", True):
        pass
    replays = queued(replay_of__isnull=False)
    assert sorted(job.replay_of for job in replays) == sorted(ended)
    assert triage.bulk.get(draft.id).cutoff.tzinfo is not None


def test_the_command_takes_each_job_once(
    ended: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "BATCH", 2)
    call_command("jobqueue", "replay", "--status", "failed", "--yes", verbosity=0)
    assert sorted(job.replay_of for job in queued()) == sorted(ended)
