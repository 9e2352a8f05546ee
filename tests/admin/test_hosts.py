"""The pages of hosts: their plans, and what operators ask of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import AuditEntry, Host
from tests.admin import scene as rows
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import confirm, get, list_of, page_of, select
from tests.admin.scene import Scene
from tests.admin.units import act, buttons, problems, question, shown

pytestmark = pytest.mark.usefixtures("requests_commit")


def desired(scene: Scene, name: str) -> dict[str, Any]:
    asked: dict[str, Any] = Host.objects.get(pk=scene.hosts[name]).desired
    return asked


def test_the_list_shows_the_plan_and_the_requests_not_dealt_with(
    anna: Client, scene: Scene
) -> None:
    text = get(anna, list_of("host")).text
    rows = {name: text.partition(name)[2] for name in re.findall(r"web-\d:\S+", text)}
    for name, *expected in (
        ("web-1:900", "running asked: Processes: 8 renewed", "default, mail", "r7"),
        ("web-1:900", "2 processes 4 threads + 100 async slots each"),
        ("web-2:900", "asked: Drain"),
        ("web-3:900", "lapsed"),
        ("web-4:900", "0 processes"),
        ("web-5:900", "asked: Restart", "No module named 'shop.mail'"),
        ("web-1:77/embedded", "embedded"),
    ):
        row = rows[name].partition(" web-")[0]
        assert [one for one in expected if one not in row] == [], (name, row)


def test_the_list_is_narrowed(anna: Client, scene: Scene) -> None:
    for query, names in (
        ({"state": "lapsed"}, ["lapsed"]),
        ({"state": "parked"}, ["parked"]),
        ({"state": "running"}, ["asked", "embedded", "refused"]),
        ({"q": "web-1"}, ["asked", "embedded"]),
    ):
        expected = sorted(str(scene.hosts[name]) for name in names)
        assert sorted(shown(anna, "host", **query)) == expected, query


def test_the_page_shows_what_of_the_requests_is_done_and_the_workers(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, page_of("host", scene.hosts["asked"]))
    for text in ("Processes: 8 not yet", "Queues: mail yes", "Resume yes", "web-1:1"):
        assert text in page.text
    for name in ("scale", "restart", "drain", "stop"):
        assert [link for link in page.links if f"/host/{name}/" in link]
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


VERBS = {"scale", "restart", "drain", "resume", "stop"}


def test_a_page_offers_what_its_host_can_be_asked(
    anna: Client, log_in: LogIn, scene: Scene
) -> None:
    hosts = scene.hosts
    for name, expected in (
        ("asked", VERBS - {"resume"}),
        ("draining", VERBS - {"drain"}),
        ("embedded", {"drain", "stop"}),
        ("stopped", set()),
        ("lapsed", set()),
    ):
        assert buttons(anna, "host", hosts[name]) & VERBS == expected, name
    note = "it cannot be scaled or restarted"
    assert note in get(anna, page_of("host", hosts["embedded"])).text
    assert note not in get(anna, page_of("host", hosts["asked"])).text
    assert buttons(log_in(*VIEWS), "host", hosts["asked"]) & VERBS == set()


def test_hosts_are_scaled_by_who_confirms_it(anna: Client, scene: Scene) -> None:
    asked, parked = scene.hosts["asked"], scene.hosts["parked"]
    page = select(anna, "host", "scale", asked)
    assert "Scale 1 host?" in page.text
    assert "Now: 2. Empty: unchanged." in page.text
    assert desired(scene, "parked") == {}
    said = {"processes": "4", "queues": "mail, default"}
    page = confirm(anna, "host", "scale", asked, parked, **said)
    assert "Request sent to 2 hosts: Scale." in page.text
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


def test_a_plan_that_cannot_be_is_refused(anna: Client, scene: Scene) -> None:
    before = desired(scene, "asked")
    said: dict[str, str]
    for said, problem in (
        ({}, "Give a number of processes, threads or async slots, or queues."),
        ({"processes": "101"}, "less than or equal to 100"),
        ({"processes": "-1"}, "greater than or equal to 0"),
        ({"threads": "many"}, "Enter a whole number."),
        ({"threads": "0", "async_slots": "0"}, "nothing can run"),
        ({"queues": "mail,*"}, "A queue's name has no space"),
        ({"queues": ",".join(f"q{n}" for n in range(101))}, "At most 100 queues."),
    ):
        wrong = problems(anna, "host", "scale", scene.hosts["asked"], **said)
        assert problem in wrong, said
    assert desired(scene, "asked") == before


def test_hosts_are_asked_by_who_confirms_it(anna: Client, scene: Scene) -> None:
    for verb in sorted(VERBS - {"scale"}):
        key = rows.host(f"{verb}:900")
        said = question(anna, "host", verb, key)
        assert f"{verb.capitalize()}: 1 host?" in said
        told = act(anna, "host", verb, key, scene.hosts["stopped"])
        assert f"Request sent to 1 host: {verb.capitalize()}." in told
        assert "1 host has already ended." in told
        drains = {"draining": verb == "drain"}
        request = drains if verb in ("drain", "resume") else {verb: 1}
        assert Host.objects.get(pk=key).desired == {"number": 1, **request}
        assert AuditEntry.objects.latest("id").verb == f"{verb} hosts"
    assert desired(scene, "stopped") == {}


def test_embedded_workers_are_left_out_of_what_they_cannot_do(
    anna: Client, scene: Scene
) -> None:
    both = scene.hosts["embedded"], scene.hosts["parked"]
    left_out = "1 embedded worker is left out"
    for verb, said in (("scale", {"processes": "3"}), ("restart", {})):
        assert left_out in question(anna, "host", verb, *both)
        told = act(anna, "host", verb, *both, **said)
        assert left_out in told
        assert "Request sent to 1 host" in told
        assert desired(scene, "embedded") == {}
        assert left_out in act(anna, "host", verb, both[0], **said)


def test_requests_written_by_hand_harm_no_page(anna: Client, scene: Scene) -> None:
    for n, text in enumerate(("x", [1], {"processes": [1], "queues": 7}, None)):
        values = {} if text is None else {"desired": text, "applied": text}
        key = rows.host(f"web-9:{n}", queues=text, state="odd", **values)
        assert "odd" in get(anna, page_of("host", key)).text
    assert get(anna, list_of("host")).text.count("odd") >= 4
