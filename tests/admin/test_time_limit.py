"""No page keeps the database busy: a statement that takes too long is stopped."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client

from django_jobqueue.admin.jobs.archived_jobs import ArchivedJobAdmin
from django_jobqueue.admin.lists.change_list import JobChangeList
from django_jobqueue.models import ArchivedJob
from tests.admin import scene as rows
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import Scene

SHORT = {"ADMIN_STATEMENT_TIMEOUT": 0.1}


def sleep(*args: Any, **kwargs: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(20)")


def limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        return str(cursor.fetchone()[0])


@pytest.fixture
def short(settings: Any) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, **SHORT}


def test_a_list_that_takes_too_long_says_what_can_be_done(
    anna: Client, scene: Scene, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "find_page", sleep)
    query = {"queue": "<b>", "status": "failed", "q": "ran:>1s"}
    page = get(anna, list_of("archivedjob"), code=503, **query)
    assert "This took too long" in page.text
    assert "took longer than 0.1 s" in page.text
    assert "queue: <b>" in page.text
    assert "?queue=%3Cb%3E&status=failed" in page.links
    assert "?status=failed&q=ran%3A%3E1s" in page.links
    assert list_of("archivedjob") in page.links
    assert ArchivedJob.objects.count() == len(scene.archived)


def test_whatever_takes_too_long_is_stopped(
    anna: Client, scene: Scene, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while a page is drawn, the page of a job, and an action that asks."""
    key = str(scene.archived["failed"])
    list_ = list_of("archivedjob")
    chosen = {"action": "replay", "_selected_action": [key]}
    for name, request in (
        ("tries", lambda: anna.get(list_)),
        ("page", lambda: anna.get(page_of("archivedjob", key))),
        ("select", lambda: anna.post(list_, chosen)),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(ArchivedJobAdmin, name, sleep)
            response = request()
        assert response.status_code == 503, name
        text = response.content.decode()
        assert "This took too long" in text
        assert "The database may be busy." in text


def test_other_troubles_of_the_database_are_no_lack_of_time(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    monkeypatch.setattr(JobChangeList, "find_page", fail)
    with pytest.raises(Exception, match="division by zero"):
        anna.get(list_of("archivedjob"))


def test_a_lower_limit_stands(
    anna: Client, scene: Scene, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    monkeypatch.setattr(
        ArchivedJobAdmin, "annotate", lambda *args: seen.append(limit()) or args[-1]
    )
    monkeypatch.setattr(ArchivedJobAdmin, "list_display", ("pk",))
    for before, within in {"50ms": "50ms", "7s": "100ms", "0": "100ms"}.items():
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
        get(anna, list_of("archivedjob"))
        assert seen.pop() == within


def test_the_limit_ends_with_the_page(transactional_db: None, short: None) -> None:
    """Outside of a transaction, as a site runs."""
    rows.archived()
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("anna", "", "x"))
    get(client, list_of("archivedjob"))
    assert limit() == "0"
    assert connection.get_autocommit()
