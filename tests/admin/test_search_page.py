"""One search over queued and archived jobs, and what a bare value could mean."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from django_jobqueue.models import ArchivedJob, JobType
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, FAIL, LEAK, Scene

SEARCH = reverse("admin:jobqueue_search")
JUMP = reverse("admin:jobqueue_jump")
DATA = (*VIEWS, "view_job_data")


def search(client: Client, text: str) -> Page:
    """The page of this search."""
    return get(client, SEARCH, q=text)


@pytest.fixture
def orders(scene: Scene) -> list[str]:
    """Jobs with 4711 in different places: their pages."""
    first = rows.archived(data={"order_id": 4711})
    second = rows.archived(FAIL, "failed", data={"order": {"id": "4711"}})
    third = rows.queued(data={"order_id": "4711"})
    rows.archived(data={"order_id": 47110, "note": "4711 and more", "all": [4711]})
    return [
        page_of("archivedjob", first),
        page_of("archivedjob", second),
        page_of("queuedjob", third),
    ]


def test_a_value_offers_the_searches_that_it_could_mean(
    anna: Client, orders: list[str]
) -> None:
    page = search(anna, "4711")
    assert "“4711” could mean" in page.text
    assert "data.order_id:4711 1 1 data.order.id:4711 0 1" in page.text
    links = [link for link in page.links if "data.order_id" in link]
    page = get(anna, links[0])
    assert orders[0] in page.links
    assert orders[2] in page.links
    assert orders[1] not in page.links


@pytest.mark.parametrize("text", ["data.order_id:4711", 'data.order_id:"4711"'])
def test_numbers_and_texts_are_both_found(
    anna: Client, orders: list[str], text: str
) -> None:
    page = search(anna, text)
    assert {orders[0], orders[2]} <= set(page.links)
    assert orders[1] not in page.links


def test_the_box_leads_to_the_meanings_of_a_number(
    anna: Client, orders: list[str]
) -> None:
    location = anna.get(JUMP, {"to": "4711"})["Location"]
    assert location == f"{SEARCH}?q=4711"


def test_a_list_that_does_not_understand_leads_there(
    anna: Client, orders: list[str]
) -> None:
    page = get(anna, list_of("archivedjob"), q="4711")
    assert f"{SEARCH}?q=4711" in page.links
    assert "data.order_id:4711" in get(anna, f"{SEARCH}?q=4711").text


def test_job_types_and_failures_are_found_by_their_words(
    anna: Client, scene: Scene
) -> None:
    page = search(anna, "no luck")
    assert page_of("failuregroup", scene.group) in page.links
    assert page_of("archivedjob", scene.archived["failed"]) in page.links
    assert page_of("jobtype", ADD) in search(anna, ADD).links


def test_values_are_for_those_who_may_see_them(
    log_in: LogIn, orders: list[str]
) -> None:
    assert "data.order_id" not in search(log_in(*VIEWS), "4711").text
    rows.archived(LEAK, data={"token": "4711", "card": "4711"})
    JobType.objects.filter(name=LEAK).update(sensitive=["card"])
    text = search(log_in(*DATA, name="carl"), "4711").text
    assert "data.order_id:4711" in text
    assert "data.token" not in text
    assert "data.card" not in text
    revealer = log_in(*DATA, "reveal_job_data", name="dora")
    assert "data.card:4711" in search(revealer, "4711").text


def test_only_what_the_user_may_see_is_searched(
    log_in: LogIn, orders: list[str]
) -> None:
    client = log_in("view_queuedjob", "view_job_data")
    page = search(client, "data.order_id:4711")
    assert orders[2] in page.links
    assert orders[0] not in page.links
    assert client.get(SEARCH).status_code == 200
    assert log_in(name="carl").get(SEARCH).status_code == 403


@pytest.mark.parametrize(
    "text", ["", " ", "<script>", 'data."', "x" * 5_000, "\x00", "type:", "a b c"]
)
def test_anything_can_be_asked(anna: Client, scene: Scene, text: str) -> None:
    page = search(anna, text)
    assert "<script>alert" not in page.html
    assert page.all("input", type="search")


def test_keys_that_no_name_can_be_are_quoted(anna: Client, scene: Scene) -> None:
    rows.archived(data={'a key.with: "all"': "x y"})
    job = ArchivedJob.objects.latest("created_at")
    page = search(anna, '"x y"')
    (link,) = [link for link in page.links if "data." in link]
    assert page_of("archivedjob", job.pk) in get(anna, link).links


def test_a_search_goes_on_where_its_window_ended(
    anna: Client, orders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "django_jobqueue.admin.lists.change_list.JobChangeList.window", 2
    )
    page = get(anna, list_of("archivedjob"), q="data.order_id:4711")
    assert "Searched the newest 2 jobs only" in page.text
    (button,) = [one for one in page.all("button") if "data-go" in one]
    assert "hidden" in button  # without its script a link does it
    assert "Searched back to" in search(anna, "data.order_id:4711").text


def test_keys_that_summaries_name_are_offered_for_older_jobs(
    anna: Client, log_in: LogIn, db: None
) -> None:
    JobType.objects.update(summary=None)
    JobType.objects.filter(name=ADD).update(summary="order {order.id} with {token}")
    JobType.objects.filter(name=FAIL).update(summary="order {order.id}")
    assert "data.order.id:4711 0 0 data.token:4711 0 0" in search(anna, "4711").text
    text = search(log_in(*DATA), "4711").text  # who may not see secrets
    assert "data.order.id:4711 0 0" in text
    assert "data.token" not in text
    blind = log_in(*VIEWS, name="blind")
    assert "data.order" not in search(anna, "declined").text
    assert "data.order" not in search(blind, "4711").text


def test_tables_without_a_job_are_not_shown_beside_meanings(
    anna: Client, orders: list[str]
) -> None:
    assert "Nothing matches." not in search(anna, "4711").text
    assert search(anna, "nowhere").text.count("Nothing matches.") == 2
