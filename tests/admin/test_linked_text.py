"""Notes and reasons: web addresses and issues are links, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape

from django_jobqueue import operations
from django_jobqueue.admin.parts.linked_text import REL, linked
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table
from tests.admin.hostile import HOSTILE
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, Scene

ISSUES = {"TRACKER_ISSUE_URL": "https://tracker.example/browse/{id}"}
WIKI = "https://wiki.example/runbook?a=1&b=(2)"


def links(text: str, limit: int | None = None) -> list[str]:
    """Where the links lead that a text becomes."""
    return Page(linked(text, limit)).links


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see https://a.example/x.", ["https://a.example/x"]),
        ("(https://a.example/x_(y)), then", ["https://a.example/x_(y)"]),
        ("[HTTP://a.example]", ["HTTP://a.example"]),
        ("<https://a.example/>", ["https://a.example/"]),
        ("https://a.example/?a=1&b=2", ["https://a.example/?a=1&b=2"]),
        (
            "https://a.example, http://b.example!",
            ["https://a.example", "http://b.example"],
        ),
        ("https://a.example/\\u202egpj.exe", ["https://a.example/"]),
        ("a.example tasks.net www.a.example anna@a.example", []),
        ("javascript:alert(1) JAVASCRIPT://https data:text/html,x", []),
        ("ftp://a.example file:///etc/passwd mailto:anna@a.example", []),
        ("https:// https:/// https://? xhttps://a.example", []),
        ("https://••••@a.example/", []),
        (f"https://a.example/{'x' * 2_000}", []),
        ("ABC-123 #7", []),
        ("", []),
    ],
)
def test_only_a_web_address_becomes_a_link(text: str, found: list[str]) -> None:
    page = Page(linked(text))
    assert page.links == found
    assert "".join(page.texts) == text
    assert all(link["rel"] == REL for link in page.all("a"))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_link_is_escaped(text: str) -> None:
    page = Page(linked(f"{text} https://a.example/{text}"))
    assert {tag for tag, _attributes in page.elements} <= {"a"}
    assert all(set(link) == {"href", "rel"} for link in page.all("a"))
    assert all(link.startswith("https://") for link in page.links)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ABC-123, #7", ["ABC-123", "7"]),
        ("https://a.example/ABC-123#7", []),
        ("abc-123 1#7 a#7 &#39; #7a C-1", []),
    ],
)
def test_issues_are_links_where_there_is_a_tracker(
    settings: Any, text: str, found: list[str]
) -> None:
    settings.JOBQUEUE = ISSUES
    in_tracker = [link for link in links(text) if "tracker" in link]
    assert in_tracker == [f"https://tracker.example/browse/{id}" for id in found]
    assert "".join(Page(linked(text)).texts) == text


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        (r"bug (\d+)", ["12"]),
        (r"bug \d+", ["bug%2012"]),
        (r"(?:case|bug) (?:(\d+)|(none))", ["12"]),
        (r"x*", []),
    ],
)
def test_a_project_says_how_its_issues_are_named(
    settings: Any, pattern: str, ids: list[str]
) -> None:
    settings.JOBQUEUE = {**ISSUES, "TRACKER_ISSUE_PATTERN": pattern}
    found = links("see bug 12 or ABC-123")
    assert found == [f"https://tracker.example/browse/{id}" for id in ids]


def test_a_link_that_is_cut_leads_where_it_did() -> None:
    page = Page(linked(f"see {WIKI} and more", 15))
    assert "".join(page.texts) == "see https://wi…"
    assert page.links == [WIKI]
    assert Page(linked("a" * 20, 20)).text == "a" * 20


def test_a_long_text_takes_no_time() -> None:
    """Each of these makes a pattern that tries again and again run for hours."""
    for text in ("https://" * 5_000, "(" * 20_000, "https://a" + ")" * 20_000):
        assert linked(text)


@pytest.mark.parametrize("model", ["failuregroup", "jobtype", "schedule", "auditentry"])
def test_what_operators_wrote_has_links(
    anna: Client, scene: Scene, settings: Any, model: str
) -> None:
    settings.JOBQUEUE = ISSUES
    reason = f"{WIKI} ABC-7 <b>"
    schedule = scene.schedules["overridden"]
    operations.note([scene.group], reason, by="anna")
    operations.pause([ADD], reason=reason, by="anna")
    operations.schedules.pause([schedule], reason=reason, by="anna")
    keys = {"failuregroup": scene.group, "jobtype": ADD, "schedule": schedule}
    address = page_of(model, keys[model]) if model in keys else list_of(model)
    page = get(anna, address)
    assert {WIKI, "https://tracker.example/browse/ABC-7"} <= set(page.links)
    assert f">{escape(WIKI)}</a>" in page.html
    assert "&lt;b&gt;" in page.html


def test_the_reason_of_an_operation_and_of_a_queue_has_links(
    anna: Client, scene: Scene
) -> None:
    operation = bulk.draft("cancel", Selection(Table.QUEUED), by="anna", reason=WIKI)
    bulk.start(operation.id, by="anna", reason=WIKI)
    operations.pause("mail", queues=True, reason=WIKI, by="anna")
    pages = page_of("bulkoperation", operation.id), list_of("queue")
    for address in (*pages, page_of("queue", "mail")):
        assert WIKI in get(anna, address).links, address


def test_the_history_of_an_object_has_links(anna: Client, scene: Scene) -> None:
    job = scene.queued["later"]
    anna.post(
        list_of("queuedjob") + "cancel/",
        {"keys": str(job), "confirmed": "1", "reason": WIKI},
    )
    assert WIKI in get(anna, page_of("archivedjob", job)).links
