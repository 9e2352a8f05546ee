"""The job queue in the index of pages, on another site, and in another language."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.models import ArchivedJob, BulkOperation
from django_jobqueue.stats import attention, overview
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import MODELS, Page, get, list_of, page_of
from tests.admin.scene import Scene, archived_row, insert_all, queued, worker
from tests.admin.units import act, question
from tests.store.rows import KEYED

FRONT = "/admin/jobqueue/"
OPS = pytest.mark.urls("tests.admin.ops_urls")  # another site


def entries(page: Page) -> list[str]:
    """Where the index leads, of the job queue."""
    below = [link for link in page.links if "/jobqueue/" in link]
    return [link for link in below if not link.endswith("/jobqueue/")]


def test_the_index_leads_with_the_overview(anna: Client, db: None) -> None:
    for language in ("en", "de", "ar"):
        with translation.override(language):
            index = entries(get(anna, reverse("admin:index")))
        assert index[0] == list_of("overview"), language
    # So does the menu beside each page.
    page = get(anna, list_of("worker"))
    assert entries(page)[0] == list_of("overview")
    assert " Overview Archived jobs " in page.text
    response = anna.get(list_of("overview"))
    assert (response.status_code, response["Location"]) == (302, FRONT)


def test_whoever_may_see_the_overview_is_led_there(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_overview")
    page = get(client, reverse("admin:index"))
    assert entries(page)[0] == list_of("overview")
    assert "jq-state-line" in page.html
    assert "Needs attention" in get(client, FRONT).text
    client = log_in("view_queue", name="carl")
    page = get(client, reverse("admin:index"))
    assert list_of("overview") not in page.links
    assert "jq-state-line" not in page.html
    assert client.get(list_of("overview")).status_code == 403


@OPS
def test_a_site_of_a_project_leads_to_its_own_front_page(
    anna: Client, db: None
) -> None:
    page = get(anna, "/ops/")
    assert entries(page)[0] == "/ops/jobqueue/overview/"
    assert anna.get("/ops/jobqueue/overview/")["Location"] == "/ops/jobqueue/"


def test_the_index_of_all_apps_says_the_worst_first(anna: Client, scene: Scene) -> None:
    worst, *others = attention.concerns(overview.read_now())
    page = get(anna, reverse("admin:index"))
    assert f"Job queue {worst.message} and {len(others)} more" in page.text
    assert page.all("p", **{"class": "jq jq-state-line jq-worst"})
    assert FRONT in page.links


def test_the_index_of_all_apps_says_that_all_is_well(anna: Client, db: None) -> None:
    Schedule.objects.all().delete()  # those of the sample are not served here
    worker()
    queued()
    text = get(anna, reverse("admin:index")).text
    assert "Job queue Nothing needs attention. Ready: 1, running: 0." in text


def test_the_index_is_there_when_the_state_cannot_be_read(
    anna: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # private: any of what is read
    monkeypatch.setattr(overview, "_groups", lambda _since: database_error())
    page = get(anna, reverse("admin:index"))
    assert "Job queue The state could not be read." in page.text
    assert list_of("overview") in page.links


def database_error() -> None:
    """What a missing table gives, or a lock that is held for too long."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")


@OPS
def test_every_page_is_there_and_links_stay_on_the_site(
    anna: Client, scene: Scene
) -> None:
    keys = {
        "archivedjob": scene.archived["failed"],
        "failuregroup": scene.group,
        "jobtype": rows.ADD,
        "schedule": scene.schedules["code"],
        "keylimit": KEYED,
        "host": scene.hosts["asked"],
        "lease": scene.leases["held"],
        "queue": "mail",
        "queuedjob": scene.queued["running"],
        "token": scene.tokens["billing"],
        "worker": scene.workers["running"],
    }
    pages = [page_of(model, keys[model]) for model in MODELS]
    for address in (*map(list_of, ("archivedjob", "queuedjob", "worker")), *pages):
        page = get(anna, address)
        assert address.startswith("/ops/jobqueue")
        assert not [link for link in page.links if link.startswith("/admin/")]
    told = act(anna, "archivedjob", "replay", scene.archived["failed"])
    assert "1 job was replayed." in told


@OPS
def test_a_project_changes_a_page_by_a_subclass(anna: Client, db: None) -> None:
    insert_all(ArchivedJob, [archived_row() for _ in range(110)])
    assert len(get(anna, list_of("archivedjob")).rows) == 100


def test_pages_are_in_german(anna: Client, scene: Scene) -> None:
    with translation.override("de"):
        text = get(anna, FRONT).text
        assert "Braucht Aufmerksamkeit" in text
        assert "Letzte 24 Stunden" in text
        for model in ("queuedjob", "worker"):
            text = get(anna, list_of(model)).text
            assert "Übersicht" in text, model
            assert "Overview" not in text, model
        for model, id in (
            ("archivedjob", scene.archived["failed"]),
            ("queuedjob", scene.queued["running"]),
        ):
            assert "Verlauf" in get(anna, page_of(model, id)).text
        asked = question(anna, "archivedjob", "replay", scene.archived["failed"])
        assert "1 Job wiederholen?" in asked
        operation = BulkOperation(kind="replay")
        assert str(operation) == f"wiederholen {operation.pk}"
