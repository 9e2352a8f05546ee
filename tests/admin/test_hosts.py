"""The pages of hosts: their plans, and what operators ask of them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import AuditEntry, Host
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import confirm, get, list_of, page_of, select, verb_of
from tests.admin.scene import Scene

pytestmark = pytest.mark.usefixtures("requests_commit")


def desired(scene: Scene, name: str) -> dict[str, Any]:
    """The requests in the row of this host."""
    asked: dict[str, Any] = Host.objects.get(pk=scene.hosts[name]).desired
    return asked


def row_of(client: Client, name: str, query: str = "") -> str:
    """The row of this host in the list."""
    text = get(client, f"{list_of('host')}?{query}").text
    return text.partition(name)[2].partition(" web-")[0]


def test_the_list_shows_the_plan_and_the_requests_not_dealt_with(
    anna: Client, scene: Scene
) -> None:
    asked = row_of(anna, "web-1:900")
    for text in (
        "running asked: Processes: 8 renewed",
        "2 processes 4 threads + 100 async slots each",
        "default, mail",
        "r7",
    ):
        assert text in asked
    assert "asked: Drain" in row_of(anna, "web-2:900")
    assert "lapsed" in row_of(anna, "web-3:900")
    assert "0 processes" in row_of(anna, "web-4:900")
    refused = row_of(anna, "web-5:900")
    assert "asked: Restart" in refused
    assert "No module named 'shop.mail'" in refused
    assert "embedded" in row_of(anna, "web-1:77/embedded")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=lapsed", ["lapsed"]),
        ("state=parked", ["parked"]),
        ("state=running", ["asked", "embedded", "refused"]),
        ("q=web-1", ["asked", "embedded"]),
    ],
)
def test_the_list_is_narrowed(
    anna: Client, scene: Scene, query: str, names: list[str]
) -> None:
    shown = get(anna, f"{list_of('host')}?{query}").rows
    assert sorted(shown) == sorted(str(scene.hosts[name]) for name in names)


def test_the_page_shows_what_of_the_requests_is_done_and_the_workers(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, page_of("host", scene.hosts["asked"]))
    for text in ("Processes: 8 not yet", "Queues: mail yes", "Resume yes", "web-1:1"):
        assert text in page.text
    for label in ("Scale", "Restart", "Drain", "Stop"):
        assert page.all("a", href=button(page, label))
    assert "No module named" in get(anna, page_of("host", scene.hosts["refused"])).text


def test_the_page_of_a_worker_leads_to_its_host(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    address = page_of("worker", scene.workers["running"])
    link = f"{list_of('host')}?q=web-1%3A900"
    assert link in get(anna, address).links
    assert get(anna, link).rows == [str(scene.hosts["asked"])]
    page = get(log_in("view_worker"), address)
    assert "web-1:900" in page.text
    assert link not in page.links


def button(page: Any, label: str) -> str:
    """The address of the action of this name."""
    return next(link for link in page.links if f"/host/{label.lower()}/" in link)


def offered(client: Client, key: object) -> set[str]:
    """The actions that the page of this host has."""
    links = get(client, page_of("host", key)).links
    found = (link.partition("/host/")[2].partition("/?")[0] for link in links)
    return {name for name in found if name in VERBS}


VERBS = {"scale", "restart", "drain", "resume", "stop"}


def test_a_page_offers_what_its_host_can_be_asked(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    hosts = scene.hosts
    assert offered(anna, hosts["asked"]) == VERBS - {"resume"}
    assert offered(anna, hosts["draining"]) == VERBS - {"drain"}
    assert offered(anna, hosts["embedded"]) == {"drain", "stop"}
    assert offered(anna, hosts["stopped"]) == offered(anna, hosts["lapsed"]) == set()
    note = "it cannot be scaled or restarted"
    assert note in get(anna, page_of("host", hosts["embedded"])).text
    assert note not in get(anna, page_of("host", hosts["asked"])).text
    assert offered(log_in(*VIEWS), hosts["asked"]) == set()


def test_hosts_are_scaled_by_who_confirms_it(anna: Client, scene: Scene) -> None:
    asked, parked = scene.hosts["asked"], scene.hosts["parked"]
    page = select(anna, "host", "scale", asked)
    assert "Scale 1 host?" in page.text
    assert "Now: 2. Empty: unchanged." in page.text
    assert desired(scene, "parked") == {}
    said = {"processes": "4", "queues": "mail, default"}
    page = confirm(anna, "host", "scale", asked, parked, **said)
    assert "2 hosts were asked: Scale." in page.text
    plan = {"processes": 4, "queues": ["mail", "default"]}
    assert desired(scene, "parked") == {"number": 1, **plan}
    assert desired(scene, "asked") == {"number": 4, "draining": False, **plan}
    entry = AuditEntry.objects.get()
    assert (entry.by, entry.verb) == ("anna", "scale hosts")
    assert {"web-1:900", "web-4:900"} <= set(entry.about)
    words = "Asked: Processes: 4, Queues: mail, default."
    assert {each.get_change_message() for each in LogEntry.objects.all()} == {words}
    assert words in get(anna, page_of("host", parked)).text
    confirm(anna, "host", "scale", parked, queues="*", threads="0")
    assert desired(scene, "parked") == {
        **{"number": 2, "processes": 4, "threads": 0, "queues": None}
    }


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, "Say how many processes, threads or async slots, or which queues."),
        ({"processes": "101"}, "less than or equal to 100"),
        ({"processes": "-1"}, "greater than or equal to 0"),
        ({"threads": "many"}, "Enter a whole number."),
        ({"threads": "0", "async_slots": "0"}, "nothing can run"),
        ({"queues": "mail,*"}, "A queue's name has no space"),
        ({"queues": ",".join(f"q{n}" for n in range(101))}, "At most 100 queues."),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    anna: Client, scene: Scene, said: dict[str, str], problem: str
) -> None:
    before = desired(scene, "asked")
    page = confirm(anna, "host", "scale", scene.hosts["asked"], **said)
    assert problem in page.text
    assert desired(scene, "asked") == before


@pytest.mark.parametrize("verb", sorted(VERBS - {"scale"}))
def test_hosts_are_asked_by_who_confirms_it(
    anna: Client, scene: Scene, verb: str
) -> None:
    page = select(anna, "host", verb, scene.hosts["parked"])
    assert f"{verb.capitalize()}: 1 host?" in page.text
    page = confirm(anna, "host", verb, scene.hosts["parked"], scene.hosts["stopped"])
    assert f"1 host was asked: {verb.capitalize()}." in page.text
    assert "1 host has already ended." in page.text
    request = (
        {"draining": verb == "drain"} if verb in ("drain", "resume") else {verb: 1}
    )
    assert desired(scene, "parked") == {"number": 1, **request}
    assert desired(scene, "stopped") == {}
    assert AuditEntry.objects.get().verb == f"{verb} hosts"


@pytest.mark.parametrize("verb", ["scale", "restart"])
def test_embedded_workers_are_left_out_of_what_they_cannot_do(
    anna: Client, scene: Scene, verb: str
) -> None:
    both = scene.hosts["embedded"], scene.hosts["parked"]
    said = {"processes": "3"} if verb == "scale" else {}
    left_out = "1 embedded worker is left out"
    address = f"{verb_of('host', verb)}?keys={'%0A'.join(map(str, both))}"
    assert left_out in get(anna, address).text
    page = confirm(anna, "host", verb, *both, **said)
    assert left_out in page.text
    assert "1 host was asked" in page.text
    assert desired(scene, "embedded") == {}
    assert left_out in confirm(anna, "host", verb, both[0], **said).text


@pytest.mark.parametrize("text", ["x", [1], {"processes": [1], "queues": 7}, None])
def test_requests_written_by_hand_harm_no_page(
    anna: Client, scene: Scene, text: Any
) -> None:
    values = {} if text is None else {"desired": text, "applied": text}
    key = rows.host("web-9:9", queues=text, state="odd", **values)
    for address in (list_of("host"), page_of("host", key)):
        assert "odd" in get(anna, address).text
