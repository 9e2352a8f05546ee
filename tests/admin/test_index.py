"""The job queue in Django's index of pages, and the names of lists."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, list_of
from tests.admin.scene import Scene

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
    assert " Overview Archived jobs " in page.text


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
