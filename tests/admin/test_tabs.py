"""Tabs on every page, and the box that jumps to an object."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.test import Client
from django.urls import reverse

from django_jobqueue.admin.permalink import permalink
from django_jobqueue.contrib.schedules.models import Schedule
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import MODELS, current_tabs, get, list_of, page_of, tabs_of
from tests.admin.scene import ADD, ONCE, Scene

FRONT = "/admin/jobqueue/"
JUMP = "/admin/jobqueue/queuedjob/find/"
NOBODY = "018f0000-0000-7000-8000-000000000000"


def test_the_tabs_lead_to_every_page_and_each_has_a_key_of_its_own(
    anna: Client,
) -> None:
    page = get(anna, FRONT)
    assert current_tabs(page) == [FRONT]
    assert {FRONT, *map(list_of, MODELS)} <= set(tabs_of(page))
    keys = [one["data-jq-key"] for one in page.all("a") if one.get("data-jq-key")]
    assert len(keys) == len(set(keys)) >= 7


def test_only_what_a_user_may_see_has_a_tab(log_in: LogIn) -> None:
    page = get(log_in("view_queuedjob", "view_worker"), list_of("queuedjob"))
    assert set(tabs_of(page)) == {list_of("queuedjob"), list_of("worker")}


@pytest.mark.urls("tests.admin.ops_urls")
def test_on_another_site_the_tabs_stay_there(anna: Client, scene: Scene) -> None:
    page = get(anna, "/ops/jobqueue/")
    assert all(address.startswith("/ops/") for address in tabs_of(page))
    assert len(tabs_of(page)) >= 7
    assert page.all("form", role="search")[0]["action"] == JUMP.replace("admin", "ops")
    assert not [link for link in page.links if link.startswith("/admin/")]


# Permalinks.


def test_a_permalink_leads_to_where_the_job_is_now_those_who_may_see_it(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    queued, archived = scene.queued["ready"], scene.archived["failed"]
    for model, id in (("queuedjob", queued), ("archivedjob", archived)):
        response = anna.get(permalink(id))
        assert (response.status_code, response["Location"]) == (302, page_of(model, id))
    assert anna.get(permalink(uuid4())).status_code == 404
    client = log_in("view_queuedjob")
    assert client.get(permalink(queued)).status_code == 302
    assert client.get(permalink(archived)).status_code == 404
    assert "/login/" in Client().get(permalink(queued))["Location"]


# The box.


def jump(client: Client, to: str) -> str:
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


def test_what_is_not_there_leads_back_and_says_so(anna: Client, scene: Scene) -> None:
    for text in ("", "\x00", NOBODY):
        assert jump(anna, text) == FRONT
        assert ("that you may see" in get(anna, FRONT).text) == (text == NOBODY)
    for text in ("nothing", "<b>\x00", "x" * 5_000):
        assert "Nothing matches." in get(anna, jump(anna, text)).text


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
