"""Projects whose times are local ones, in the night in which an hour comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from django_jobqueue import get_job, operations
from django_jobqueue.admin.jobs.archived_jobs import ArchivedJobAdmin
from django_jobqueue.domain import chunk_throttle
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    FailureGroup,
    JobType,
    QueuedJob,
)
from django_jobqueue.search.selection import Selection, Table
from django_jobqueue.stats import overview
from django_jobqueue.store.connection import DjangoDatabase
from tests.admin import scene
from tests.admin.endpoints import ALL, Endpoint, keys_of
from tests.admin.pages import Page, confirm, get, list_of, page_of
from tests.sample import jobs
from tests.support.rows import queued

END_OF_SUMMER = datetime(2026, 10, 25, 1, tzinfo=UTC)  # 02:00 in Berlin, again
MOMENTS = [END_OF_SUMMER + timedelta(minutes=5 * n - 30) for n in range(12)]


LOCAL = pytest.param(True, id="local", marks=pytest.mark.slow("like UTC's"))


@pytest.fixture(autouse=True, params=[pytest.param(False, id="naive"), LOCAL])
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


def test_a_bulk_operation_takes_each_job_once(
    ended: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SMALLEST", "FIRST", "LARGEST"):
        monkeypatch.setattr(chunk_throttle, name, 2)
    call_command("jobqueue", "replay", "--status", "failed", "--yes", verbosity=0)
    assert sorted(job.replay_of for job in queued()) == sorted(ended)
    id = BulkOperation.objects.get().pk
    assert operations.bulk.get(id).cutoff.tzinfo is not None


NOON = datetime(2099, 7, 1, 10, tzinfo=UTC)  # 12:00 in Berlin
OPENS = (200, 302, 403, 405)
SCHEDULES = ("schedule/", "jobtype/<path:object_id>/change/")


@pytest.fixture
def anna() -> Client:
    """A superuser's browser."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("anna", "", "x"))
    overview.forget()
    return client


def answer(client: Client, endpoint: Endpoint, keys: dict[str, object]) -> Any:
    """Ask for a page as its links do."""
    address = endpoint.address(keys)
    if endpoint.route and "<" not in endpoint.route:
        address += f"?keys={keys[endpoint.model]}"
    return client.get(address)


def shown_on(page: Page) -> list[str]:
    """The ids of the jobs in a list, in its order."""
    return [str(cell["title"]) for cell in page.all("span", **{"class": "jq-id"})]


MAIN = [e for e in ALL if not e.route or e.route.endswith("_id>/change/")]
PAGES = [
    pytest.param(MAIN, False, id="naive"),
    pytest.param([*{*ALL} - {*MAIN}], False, marks=pytest.mark.slow("further pages")),
    pytest.param(ALL, True, marks=pytest.mark.slow("aware times are like UTC's")),
]


@pytest.mark.parametrize(
    ("endpoints", "not_in_utc"), PAGES, indirect=["not_in_utc"], scope="function"
)
def test_every_page_shows_local_times(anna: Client, endpoints: list[Endpoint]) -> None:
    keys = dict(keys_of(scene.build()))
    operations.pause([scene.ADD], resume_at=NOON)
    FailureGroup.objects.update(state="ignored", ignored_until=NOON)
    answers = {str(endpoint): answer(anna, endpoint, keys) for endpoint in endpoints}
    assert {
        page: answer.status_code
        for page, answer in answers.items()
        if answer.status_code not in OPENS
    } == {}
    shown = {
        page: answer.text
        for page, answer in answers.items()
        if answer.status_code == 200 and "html" in answer.headers["Content-Type"]
    }
    assert len(shown) > 20
    # A schedule's moments are shown in UTC, too, and a job type's page names the time
    # zones of its schedules.
    in_utc = [page for page, html in shown.items() if " UTC" in html]
    assert [page for page in in_utc if not page.startswith(SCHEDULES)] == []


def test_a_list_shows_each_job_once_and_which_of_the_two_hours_it_was(
    anna: Client, ended: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArchivedJobAdmin, "list_per_page", 5)
    pages = [get(anna, list_of("archivedjob"))]
    while older := pages[-1].all("a", rel="next"):
        pages.append(get(anna, list_of("archivedjob") + str(older[0]["href"])))
    shown = [shown_on(page) for page in pages]
    assert [id for page in shown for id in page] == [str(id) for id in reversed(ended)]
    newer = str(pages[-1].all("a", rel="prev")[0]["href"])
    assert shown_on(get(anna, list_of("archivedjob") + newer)) == shown[-2]
    assert "2026-10-25 02:25:00 CET" in pages[0].html
    assert "2026-10-25 02:30:00 CEST" in pages[-1].html
    # A day that is searched for is a local one, too.
    moment = datetime(2026, 10, 24, 22, 30, tzinfo=UTC)
    ArchivedJob.objects.filter(id=ended[0]).update(finished_at=moment)
    monkeypatch.undo()
    found = get(anna, list_of("archivedjob"), q="finished:2026-10-25")
    assert len(shown_on(found)) == len(ended)
    found = get(anna, list_of("archivedjob"), q="finished:2026-10-24")
    assert shown_on(found) == []


def test_a_moment_that_is_chosen_is_a_local_one(anna: Client) -> None:
    id, noon = scene.queued(), "2099-07-01T12:00"
    confirm(anna, "queuedjob", "reschedule", id, run_after=noon)
    assert QueuedJob.objects.get(id=id).run_after == NOON
    confirm(anna, "jobtype", "pause", scene.ADD, reason="deploy", resume_at=noon)
    assert JobType.objects.get(name=scene.ADD).resume_at == NOON
    page = get(anna, page_of("jobtype", scene.ADD))
    assert "2099-07-01 12:00:00 CEST" in page.html


COMMANDS = (
    "status",
    "status --format json",
    "replay --status failed --since 2026-10-25 --until 2026-10-26T12:00 --yes",
    "prune --older-than 1d --yes",
    "pause tests.sample.add --until 2099-07-01T12:00",
    "cancel --type tests.sample.add --yes",
)


def test_a_commands_time_is_a_local_one(ended: list[UUID], anna: Client) -> None:
    scene.build()
    for words in COMMANDS:
        call_command("jobqueue", *words.split(), verbosity=0)
    assert JobType.objects.get(name=scene.ADD).resume_at == NOON
    words = f'enqueue {jobs.add.name} {{"a":1}} --run-after 2099-07-01T12:00'
    call_command("jobqueue", *words.split(), verbosity=0)
    assert [job.data for job in queued(run_after=NOON)] == [{"a": 1}]


def test_a_time_that_is_chosen_in_python_is_as_djangos_are(ended: list[UUID]) -> None:
    """Without a zone where Django's times have none."""
    naive = settings.USE_TZ is False
    noon = datetime(2099, 7, 1, 12) if naive else NOON
    later = noon + timedelta(hours=1)
    made = jobs.add.using(run_after=noon, expires_at=later).enqueue(1)
    assert (made.run_after, made.expires_at) == (NOON, NOON + timedelta(hours=1))
    operations.reschedule([made.id], run_after=later)
    again = operations.replay(ended[0], run_after=noon, expires=later)
    operations.pause(jobs.add.name, resume_at=noon)
    draft = operations.bulk.draft("reschedule", Selection(Table.QUEUED), run_after=noon)
    assert get_job(made.id).run_after == NOON + timedelta(hours=1)
    assert (again.run_after, again.expires_at) == (NOON, NOON + timedelta(hours=1))
    assert JobType.objects.get(name=jobs.add.name).resume_at == NOON
    assert operations.bulk.get(draft.id).options.run_after == NOON
