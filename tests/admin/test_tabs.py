"""Tabs on every page, and the box that jumps to an object."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from django_jobqueue.admin.permalink import permalink
from django_jobqueue.models import Schedule
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import MODELS, Page, get, list_of, page_of, select
from tests.admin.scene import ADD, ONCE, Scene
from tests.admin.test_pages import keys_of

FRONT = "/admin/jobqueue/"
JUMP = "/admin/jobqueue/queuedjob/find/"


def tabs_of(page: Page) -> dict[str, bool]:
    """Where the tabs of a page lead, and whether it is the page itself."""
    return {
        str(one["href"]): one.get("aria-current") == "page"
        for one in page.all("a")
        if "data-jq-key" in one
    }


def current_tab(page: Page) -> list[str]:
    """The tabs of the page that is looked at."""
    return [address for address, is_current in tabs_of(page).items() if is_current]


def test_the_tabs_lead_to_every_page_and_lists_know_their_own(anna: Client) -> None:
    assert current_tab(get(anna, FRONT)) == [FRONT]
    for model in MODELS:
        page = get(anna, list_of(model))
        assert current_tab(page) == [list_of(model)]
        assert {FRONT, *map(list_of, MODELS)} <= set(tabs_of(page))


@pytest.mark.parametrize("model", MODELS)
def test_pages_of_objects_and_their_histories_have_tabs(
    anna: Client, scene: Scene, model: str
) -> None:
    address = page_of(model, keys_of(scene, model)[0])
    assert current_tab(get(anna, address)) == [list_of(model)]
    history = address.replace("/change/", "/history/")
    assert current_tab(get(anna, history)) == [list_of(model)]


def test_the_page_that_asks_has_tabs(anna: Client, scene: Scene) -> None:
    page = select(anna, "queuedjob", "cancel", scene.queued["ready"])
    assert current_tab(page) == [list_of("queuedjob")]


def test_only_what_a_user_may_see_has_a_tab(log_in: LogIn) -> None:
    page = get(log_in("view_queuedjob", "view_worker"), list_of("queuedjob"))
    assert set(tabs_of(page)) == {list_of("queuedjob"), list_of("worker")}


def test_every_tab_has_a_key_of_its_own(anna: Client) -> None:
    found = [one.get("data-jq-key") for one in get(anna, FRONT).all("a")]
    keys = [key for key in found if key]
    assert len(keys) == len(set(keys)) >= 7


@pytest.mark.urls("tests.admin.ops_urls")
def test_on_another_site_the_tabs_stay_there(anna: Client, scene: Scene) -> None:
    page = get(anna, "/ops/jobqueue/")
    assert all(address.startswith("/ops/") for address in tabs_of(page))
    assert len(tabs_of(page)) >= 7
    assert page.all("form", role="search")[0]["action"] == JUMP.replace("admin", "ops")
    assert not [link for link in page.links if link.startswith("/admin/")]


# Permalinks.


@pytest.mark.parametrize(
    ("model", "name"), [("queuedjob", "ready"), ("archivedjob", "failed")]
)
def test_a_permalink_leads_to_where_the_job_is_now(
    anna: Client, scene: Scene, model: str, name: str
) -> None:
    id = getattr(scene, model.removesuffix("job"))[name]
    response = anna.get(permalink(id))
    assert (response.status_code, response["Location"]) == (302, page_of(model, id))


def test_a_permalink_of_no_job_leads_nowhere(anna: Client) -> None:
    assert anna.get(permalink(uuid4())).status_code == 404


def test_a_permalink_tells_nothing_to_those_who_may_not_see_the_job(
    log_in: LogIn, scene: Scene
) -> None:
    client = log_in("view_queuedjob")
    assert client.get(permalink(scene.queued["ready"])).status_code == 302
    assert client.get(permalink(scene.archived["failed"])).status_code == 404
    stranger = Client().get(permalink(scene.queued["ready"]))
    assert "/login/" in stranger["Location"]


# The box.


def jump(client: Client, to: str) -> str:
    """Where the box leads."""
    response = client.get(JUMP, {"to": to})
    assert response.status_code == 302
    location: str = response["Location"]
    return location


def test_the_box_leads_to_jobs_types_and_failures(anna: Client, scene: Scene) -> None:
    queued, archived = scene.queued["ready"], scene.archived["failed"]
    assert jump(anna, f" {queued} ") == page_of("queuedjob", queued)
    assert jump(anna, f"job_{archived}") == page_of("archivedjob", archived)
    assert jump(anna, scene.group.hex) == page_of("failuregroup", scene.group)
    assert jump(anna, ADD) == page_of("jobtype", ADD)
    assert jump(anna, "write_once") == page_of("jobtype", ONCE)
    assert jump(anna, "RITE_ONC") == page_of("jobtype", ONCE)
    Schedule.objects.create(name="nightly", job_type_id=ADD, rule="cron 0 2 * * *")
    assert jump(anna, "nightly") == page_of("schedule", "nightly")
    Schedule.objects.create(name=ADD, job_type_id=ADD, rule="cron 0 2 * * *")
    assert jump(anna, ADD) == page_of("jobtype", ADD)


def test_the_box_takes_words_of_an_error(anna: Client, scene: Scene) -> None:
    failures, everywhere = list_of("failuregroup"), reverse("admin:jobqueue_search")
    assert jump(anna, "no luck") == f"{failures}?q=no+luck"
    page = get(anna, failures, q="no luck")
    assert page_of("failuregroup", scene.group) in page.html
    assert jump(anna, "not wanted") == f"{everywhere}?q=not+wanted"
    page = get(anna, everywhere, q="not wanted")
    assert page_of("archivedjob", scene.archived["cancelled"]) in page.html


def test_a_name_that_several_types_have_leads_to_their_jobs(
    anna: Client, scene: Scene
) -> None:
    address = jump(anna, "rite_")
    assert address == f"{reverse('admin:jobqueue_search')}?q=rite_"
    page = get(anna, address)
    assert page_of("archivedjob", scene.archived["once"]) in page.html


NOBODY = "018f0000-0000-7000-8000-000000000000"


@pytest.mark.parametrize("text", ["", NOBODY, "\x00"])
def test_what_is_not_there_leads_back_and_says_so(anna: Client, text: str) -> None:
    assert jump(anna, text) == FRONT
    page = get(anna, FRONT)
    assert ("that you may see" in page.text) == (text == NOBODY)


@pytest.mark.parametrize("text", ["nothing", "<b>\x00", "x" * 5_000])
def test_words_that_nothing_has_lead_to_a_list_without_rows(
    anna: Client, scene: Scene, text: str
) -> None:
    page = get(anna, jump(anna, text))
    assert "Nothing matches." in page.text


def test_the_box_leads_only_where_the_user_may_go(log_in: LogIn, scene: Scene) -> None:
    client = log_in("view_queuedjob")
    for text in (str(scene.archived["failed"]), str(scene.group)):
        assert jump(client, text) == list_of("queuedjob")
    page = get(client, jump(client, ADD))
    assert page_of("queuedjob", scene.queued["ready"]) in page.links
    assert not [link for link in page.links if "/jobtype/" in link]
    id = rows.queued()
    assert jump(client, str(id)) == page_of("queuedjob", id)
    stranger = log_in(name="carl")
    assert stranger.get(JUMP, {"to": str(id)}).status_code == 403
