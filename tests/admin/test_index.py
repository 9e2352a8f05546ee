"""The job queue in Django's index of pages, and the names of lists."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import translation

from django_jobqueue.models import Schedule
from django_jobqueue.stats import attention, overview
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of
from tests.admin.scene import Scene, queued, worker

FRONT = "/admin/jobqueue/"


def entries(page: Page) -> list[str]:
    """Where the index leads, of the job queue."""
    below = [link for link in page.links if "/jobqueue/" in link]
    return [link for link in below if not link.endswith("/jobqueue/")]


@pytest.mark.parametrize("language", ["en", "de", "ar"])
def test_the_index_leads_with_the_overview(
    anna: Client, db: None, language: str
) -> None:
    with translation.override(language):
        assert entries(get(anna, reverse("admin:index")))[0] == list_of("overview")


def test_so_does_the_menu_beside_each_page(anna: Client, db: None) -> None:
    page = get(anna, list_of("worker"))
    assert entries(page)[0] == list_of("overview")
    assert " Overview Alerts Archived jobs " in page.text


def test_the_entry_leads_to_the_front_page_of_the_app(anna: Client, db: None) -> None:
    response = anna.get(list_of("overview"))
    assert (response.status_code, response["Location"]) == (302, FRONT)


def test_the_right_to_see_the_overview_is_enough_to_come_there(
    log_in: LogIn, db: None
) -> None:
    client = log_in("view_overview")
    assert entries(get(client, reverse("admin:index")))[0] == list_of("overview")
    assert "Needs attention" in get(client, FRONT).text


def test_who_may_not_see_the_overview_is_not_led_there(log_in: LogIn, db: None) -> None:
    client = log_in("view_queue")
    page = get(client, reverse("admin:index"))
    assert list_of("overview") not in page.links
    assert client.get(list_of("overview")).status_code == 403


@pytest.mark.urls("tests.admin.ops_urls")
def test_a_site_of_a_project_leads_to_its_own_front_page(
    anna: Client, db: None
) -> None:
    page = get(anna, "/ops/")
    assert entries(page)[0] == "/ops/jobqueue/overview/"
    assert anna.get("/ops/jobqueue/overview/")["Location"] == "/ops/jobqueue/"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("archivedjob", "Archived jobs"),
        ("failuregroup", "Failure groups"),
        ("jobtype", "Job types"),
        ("queue", "Queues"),
        ("schedule", "Schedules"),
        ("bulkoperation", "Bulk operations"),
    ],
)
def test_a_list_has_the_name_of_what_it_lists(
    anna: Client, scene: Scene, model: str, name: str
) -> None:
    html = get(anna, list_of(model)).html
    assert f"<h1>{name}</h1>" in html
    assert f"<title>{name} |" in html


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


def test_the_index_says_nothing_of_the_queue_to_who_may_not_see_its_overview(
    log_in: LogIn, scene: Scene
) -> None:
    page = get(log_in("view_queue"), reverse("admin:index"))
    assert "jq-state-line" not in page.html


def test_the_index_is_there_when_the_state_cannot_be_read(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_groups", lambda _since: database_error())
    page = get(anna, reverse("admin:index"))
    assert "Job queue The state could not be read." in page.text
    assert list_of("overview") in page.links


def database_error() -> None:
    """What a missing table gives, or a lock that is held for too long."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM no_such_table")
