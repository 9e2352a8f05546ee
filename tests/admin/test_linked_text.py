"""Notes and reasons: web addresses and issues are links, and nothing else is."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.utils.html import escape

from django_jobqueue import operations
from django_jobqueue.admin.parts.linked_text import REL, linked
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table
from tests.admin.hostile import HOSTILE
from tests.admin.pages import Page, get, list_of, page_of
from tests.admin.scene import ADD, Scene
from tests.admin.units import act

ISSUES = {"TRACKER_ISSUE_URL": "https://tracker.example/browse/{id}"}
WIKI = "https://wiki.example/runbook?a=1&b=(2)"


def links(text: str, limit: int | None = None) -> list[str]:
    return Page(linked(text, limit)).links


def test_only_a_web_address_becomes_a_link() -> None:
    for text, found in (
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
    ):
        page = Page(linked(text))
        assert page.links == found
        assert "".join(page.texts) == text
        assert all(link["rel"] == REL for link in page.all("a"))


def test_what_is_no_link_is_escaped() -> None:
    for text in HOSTILE:
        page = Page(linked(f"{text} https://a.example/{text}"))
        assert {tag for tag, _attributes in page.elements} <= {"a"}
        assert all(set(link) == {"href", "rel"} for link in page.all("a"))
        assert all(link.startswith("https://") for link in page.links)


def in_tracker(ids: list[str]) -> list[str]:
    return [f"https://tracker.example/browse/{id}" for id in ids]


def test_issues_are_links_where_there_is_a_tracker(settings: Any) -> None:
    settings.JOBQUEUE = ISSUES
    for text, found in (
        ("ABC-123, #7", ["ABC-123", "7"]),
        ("https://a.example/ABC-123#7", []),
        ("abc-123 1#7 a#7 &#39; #7a C-1", []),
    ):
        issues = [link for link in links(text) if "tracker" in link]
        assert issues == in_tracker(found)
        assert "".join(Page(linked(text)).texts) == text
    # A project says how its issues are named.
    for pattern, found in (
        (r"bug (\d+)", ["12"]),
        (r"bug \d+", ["bug%2012"]),
        (r"(?:case|bug) (?:(\d+)|(none))", ["12"]),
        (r"x*", []),
    ):
        settings.JOBQUEUE = {**ISSUES, "TRACKER_ISSUE_PATTERN": pattern}
        assert links("see bug 12 or ABC-123") == in_tracker(found), pattern


def test_a_link_that_is_cut_leads_where_it_did() -> None:
    page = Page(linked(f"see {WIKI} and more", 15))
    assert "".join(page.texts) == "see https://wi…"
    assert page.links == [WIKI]
    assert Page(linked("a" * 20, 20)).text == "a" * 20
    # Each of these makes a pattern that tries again and again run for hours.
    for text in ("https://" * 5_000, "(" * 20_000, "https://a" + ")" * 20_000):
        assert linked(text)


def test_what_operators_wrote_has_links(
    anna: Client, scene: Scene, settings: Any
) -> None:
    settings.JOBQUEUE = ISSUES
    reason = f"{WIKI} ABC-7 <b>"
    schedule = scene.schedules["overridden"]
    operations.note([scene.group], reason, by="anna")
    operations.pause([ADD], reason=reason, by="anna")
    schedule_operations.pause([schedule], reason=reason, by="anna")
    operation = bulk.draft("cancel", Selection(Table.QUEUED), by="anna", reason=reason)
    bulk.start(operation.id, by="anna", reason=reason)
    operations.pause("mail", queues=True, reason=reason, by="anna")
    job = scene.queued["later"]
    act(anna, "queuedjob", "cancel", job, reason=reason)
    for address in (
        page_of("failuregroup", scene.group),
        page_of("jobtype", ADD),
        page_of("schedule", schedule),
        list_of("auditentry"),
        page_of("bulkoperation", operation.id),
        list_of("queue"),
        page_of("queue", "mail"),
        page_of("archivedjob", job),  # its history
    ):
        page = get(anna, address)
        both = {WIKI, "https://tracker.example/browse/ABC-7"}
        assert both <= set(page.links), address
        assert f">{escape(WIKI)}</a>" in page.html, address
        assert "&lt;b&gt;" in page.html, address
