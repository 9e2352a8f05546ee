"""Saved views: what a list was narrowed by, for oneself or for all."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from django_jobqueue.contrib.console import saved_views
from django_jobqueue.contrib.console.admin import view_page
from django_jobqueue.contrib.console.admin.view_menu import view_menu
from django_jobqueue.contrib.console.admin.visible_views import PASSING
from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.management.jobqueue.roles import rights_of
from django_jobqueue.models import AuditEntry
from tests.admin.conftest import LogIn
from tests.admin.endpoints import everything
from tests.admin.pages import Page, get, list_of
from tests.admin.units import answer, press, request_of

PAGE = "/admin/jobqueue_console/savedview/"
SEARCH = "/admin/jobqueue/queuedjob/search/"
ARCHIVE = list_of("archivedjob")
JOBS = ("view_archivedjob", "view_queuedjob", "add_savedview")

# A condition of every list.
LISTS = {
    "alert": "state=firing",
    "archivedjob": "job_type=shop.add&status=failed",
    "auditentry": "verb=pause",
    "bulkoperation": "state=done",
    "failuregroup": "sort=hour&state=all",
    "queuedjob": "q=data.order_id%3A7&state=ready",
    "schedule": "state=paused",
    "search": "q=4711",
    "worker": "state=running",
}


def address_of(name: str) -> str:
    return SEARCH if name == "search" else list_of(name)


def said(**said: str) -> dict[str, str]:
    return {"list": "archivedjob", "query": "status=failed", "name": "Broken", **said}


def save(client: Client, **more: str) -> str:
    return press(client, f"{PAGE}save/", **said(**more))


def edit(client: Client, view: SavedView, **more: str) -> str:
    return press(client, f"{PAGE}edit/", view=view.pk, **more)


def delete(client: Client, view: SavedView) -> str:
    return press(client, f"{PAGE}delete/", view=view.pk)


def made(owner: str = "bert", **columns: Any) -> SavedView:
    usual = {"list": "archivedjob", "query": "status=failed", "name": "Broken"}
    return SavedView.objects.create(owner=owner, **{**usual, **columns})


def offered(client: Client) -> list[str]:
    """The views above the list of archived jobs, in their order."""
    menu = view_menu(request_of(client, ARCHIVE), "archivedjob", {"q", "status"})
    assert menu is not None
    return [entry.view.name for entry in menu.entries]


def on_the_page(client: Client) -> list[str]:
    lists = answer(client, PAGE).context_data["lists"]
    return [view.name for one in lists for view in one.views]


# Saving.


def test_every_list_saves_what_it_shows_and_marks_it(anna: Client) -> None:
    for name, query in LISTS.items():
        here = address_of(name)
        narrowed = get(anna, f"{here}?{query}")
        (form,) = narrowed.all("form", action=f"{PAGE}save/")
        assert form["method"] == "post"
        mine = said(list=name, query=query, name="Mine", shared="on")
        response = anna.post(f"{PAGE}save/", mine)
        assert response.headers["Location"] == f"{here}?{query}", name
    page = get(anna, f"{here}?{query}")
    assert "The view “Mine” was saved." in page.text
    assert page.all("a", **{"href": f"?{query}", "aria-current": "true"})
    assert not page.all("form", action=f"{PAGE}save/")
    elsewhere = get(anna, here)
    assert {"href": f"?{query}"} in elsewhere.all("a", href=f"?{query}")
    assert not elsewhere.all("a", **{"href": f"?{query}", "aria-current": "true"})


def test_a_list_that_is_not_or_cannot_be_narrowed_offers_nothing(anna: Client) -> None:
    text = get(anna, ARCHIVE).text
    assert "Save this view" not in text
    assert "Views" not in text
    with CaptureQueriesContext(connection) as captured:
        get(anna, list_of("queue"))
    assert not [one for one in captured if "jobqueue_console_savedview" in one["sql"]]


def test_the_page_is_left_out_and_the_order_of_conditions_is_all_the_same(
    anna: Client,
) -> None:
    passing = "&".join(f"{name}=1" for name in sorted(PASSING))
    save(anna, query=f"status=failed&{passing}&queue=&job_type=shop.add")
    (view,) = SavedView.objects.all()
    assert view.query == "job_type=shop.add&status=failed"
    page = get(anna, f"{ARCHIVE}?status=failed&job_type=shop.add")
    assert page.all("a", **{"aria-current": "true", "href": f"?{view.query}"})


def test_only_conditions_of_this_list_are_saved_and_lead_to_it(anna: Client) -> None:
    for query in (
        "data__token__startswith=a",
        "status=failed&next=https://evil.example/",
        "error_message__icontains=x",
        "sort=hour",
        "state=ready",
        "q=a%00b",
        "&".join(f"a{number}=1" for number in range(2_000)),
    ):
        response = anna.post(f"{PAGE}save/", said(query=query))
        assert response.headers["Location"] == ARCHIVE, query
    assert "error" in get(anna, ARCHIVE).html
    assert not SavedView.objects.exists()
    for query in (
        "https://evil.example/",
        "//evil.example/?status=failed",
        "?status=failed",
        "javascript:alert(1)",
        "status=failed\r\nLocation: https://evil.example/",
        "status=failed#//evil.example",
    ):
        response = anna.post(f"{PAGE}save/", said(query=query))
        where = urlsplit(response.headers["Location"])
        assert (where.scheme, where.netloc, where.path) == ("", "", ARCHIVE), query
    for view in SavedView.objects.all():
        assert view.query.startswith("status=failed")
        assert not {"\r", "\n", "#"} & set(view.query)


def test_what_cannot_be_saved_is_told(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for more, text in (
        ({"name": ""}, "This field is required."),
        ({"name": " \t "}, "This field is required."),
        ({"name": "x" * 61}, "at most 60 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"query": ""}, "There is nothing to save"),
        ({"query": "after=x"}, "There is nothing to save"),
        ({"query": f"q={'x' * 2_000}"}, "too long to be saved"),
        ({"query": "data__token=1"}, "This list has no such filter: data__token."),
    ):
        assert text in save(anna, **more), more
    assert not SavedView.objects.exists()

    monkeypatch.setattr(view_page, "MOST", 2)
    made("anna", name="one")
    made("anna", name="two", list="queuedjob")
    made("bert", name="three")
    assert "You have 2 saved views. Delete one first." in save(anna)
    assert "was replaced" in save(anna, name="one", query="status=expired")
    assert SavedView.objects.count() == 3
    SavedView.objects.all().delete()
    # A name of one's own replaces the view, and keeps it shared.
    made("bert")
    save(anna, shared="on")
    assert "The view “Broken” was replaced." in save(anna, query="status=expired")
    found = SavedView.objects.order_by("owner").values_list("query", "is_shared")
    assert list(found) == [("status=expired", True), ("status=failed", False)]


# Whose they are.


def test_views_are_private_until_they_are_shared(anna: Client, log_in: LogIn) -> None:
    his = made(name="his")
    made(name="for all", is_shared=True)
    made(name="of others", list="queuedjob", is_shared=True)
    carl = log_in(*JOBS, name="carl")
    page = get(carl, ARCHIVE)
    assert "for all" in page.text
    assert "bert" in page.text
    assert offered(carl) == ["for all"]
    assert {"for all", "of others"} == {*on_the_page(carl)}
    assert offered(log_in(*JOBS)) == ["for all", "his"]
    # Whoever does not see the list sees no view of it.
    blind = log_in("view_queue", name="blind")
    assert on_the_page(blind) == []
    get(log_in(name="dora"), PAGE, code=403)
    # Not even a superuser sees what is private.
    assert "his" not in on_the_page(anna)
    assert anna.post(f"{PAGE}delete/", {"view": his.pk}).status_code == 403


def test_saving_and_sharing_need_their_rights(log_in: LogIn) -> None:
    for rights in (("view_archivedjob",), ("add_savedview", "view_queue")):
        client = log_in(*rights, name=rights[0])
        assert client.post(f"{PAGE}save/", said()).status_code == 403
    reader = get(log_in("view_archivedjob", name="eve"), f"{ARCHIVE}?status=failed")
    assert "Save this view" not in reader.text
    client = log_in(*JOBS)
    nothing = client.post(f"{PAGE}save/", said(list="nothing"))
    assert nothing.status_code == 403
    page = get(client, f"{ARCHIVE}?status=failed")
    assert "Save this view" in page.text
    assert "share with all" not in page.text
    assert client.post(f"{PAGE}save/", said(shared="on")).status_code == 403
    view = made()
    edit(client, view, name="y", shared="on")
    view.refresh_from_db()
    assert (view.name, view.is_shared) == ("y", False)
    # Nor does anybody who may no longer share change what others see.
    made(is_shared=True)
    told = save(client, query="status=expired")
    assert "“Broken” is shared, and you may not share" in told
    assert {one.query for one in SavedView.objects.all()} == {"status=failed"}
    operator = log_in(
        *rights_of("Job viewer"), *rights_of("Job operator"), name="operator"
    )
    assert "was saved" in save(operator, shared="on")
    assert SavedView.objects.get(owner="operator").is_shared


def test_others_views_are_changed_by_those_who_share_if_they_see_them(
    log_in: LogIn,
) -> None:
    plain = log_in(*JOBS, name="carl")
    sharing = log_in(*JOBS, "share_savedview", name="dora")
    for client, shared, code in (
        (plain, False, 403),
        (plain, True, 403),
        (sharing, False, 403),
        (sharing, True, 302),
    ):
        view = made(is_shared=shared)
        sent = {"view": view.pk, "name": "mine now", "shared": "on"}
        assert client.post(f"{PAGE}edit/", sent).status_code == code
        view.refresh_from_db()
        assert view.name == ("Broken" if code == 403 else "mine now")
        assert client.post(f"{PAGE}delete/", sent).status_code == code
        assert SavedView.objects.exists() == (code == 403)
        SavedView.objects.all().delete()


def test_a_view_is_renamed_shared_and_deleted(anna: Client) -> None:
    view = made("anna")
    assert "The view “Lost” was changed." in edit(anna, view, name=" Lost ", shared="1")
    view.refresh_from_db()
    assert (view.name, view.is_shared) == ("Lost", True)
    other = made("anna")
    assert "There is another view “Lost”." in edit(anna, other, name="Lost")
    assert "This field is required." in edit(anna, other, name="")
    other.refresh_from_db()
    assert other.name == "Broken"
    delete(anna, other)
    assert "The view “Lost” was deleted." in delete(anna, view)
    assert "There are no saved views." in get(anna, PAGE).text
    # One that is not there is refused.
    for sent in ("", "x", "-1", "9" * 18, "9" * 40, "²", "\x00", None):
        data = {"name": "x"} | ({} if sent is None else {"view": sent})
        for route in ("edit/", "delete/"):
            assert anna.post(PAGE + route, data).status_code == 403, sent


def test_what_is_shared_is_recorded_without_its_conditions(
    anna: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="django_jobqueue.operations")
    save(anna, name="private", query="q=Chiara")
    assert not caplog.records
    save(anna, name="for all", query="q=Chiara", shared="on")
    view = SavedView.objects.get(name="for all")
    edit(anna, view, name="not for all")
    edit(anna, view, name="hidden")
    save(anna, name="again", query="q=Chiara", shared="on")
    delete(anna, SavedView.objects.get(name="again"))
    acts = AuditEntry.objects.order_by("id").values_list("verb", "by", "details")
    assert list(acts) == [
        ("save view", "anna", {"list": "archivedjob", "view": "for all"}),
        ("change view", "anna", {"list": "archivedjob", "view": "not for all"}),
        ("save view", "anna", {"list": "archivedjob", "view": "again"}),
        ("delete view", "anna", {"list": "archivedjob", "view": "again"}),
    ]
    assert "Chiara" not in caplog.text


def test_a_viewer_writes_nothing_but_views(log_in: LogIn) -> None:
    client = log_in(*rights_of("Job viewer"))
    before = everything()
    save(client)
    view = SavedView.objects.get()
    edit(client, view, name="Lost")
    assert dict(everything().items() - before.items()).keys() == {
        "jobqueue_console_savedview"
    }
    delete(client, view)
    assert everything() == before


@pytest.mark.django_db(transaction=True)
def test_private_views_go_with_their_user_and_shared_ones_stay(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> int:
        raise RuntimeError("no table")

    users = get_user_model().objects
    made(name="his")
    made(name="for all", is_shared=True)
    made("carl", name="other")
    users.create_user("bert", is_staff=True).delete()
    left = SavedView.objects.values_list("name", flat=True)
    assert sorted(left) == ["for all", "other"]
    # A user is deleted whatever the job queue says.
    carl = users.create_user("carl", is_staff=True)
    monkeypatch.setattr(saved_views, "forget", fail)
    carl.delete()
    assert not users.exists()
    assert "no table" in caplog.text


# What they show.


def test_a_view_whose_filters_are_gone_says_so(anna: Client) -> None:
    made("anna", name="Old", query="colour=red&status=failed")
    made("anna", name="Worse", query="&".join(f"a{n}=1" for n in range(1_500))[:2_000])
    made("anna", name="secret", query="q=password%3Dhunter2")
    for address in (ARCHIVE, PAGE):
        page = get(anna, address)
        assert "Old the list no longer has colour" in page.text
        assert not [link for link in page.links if "colour" in link]
        assert "hunter2" not in page.text


def test_a_search_for_data_is_shown_to_those_who_see_data(log_in: LogIn) -> None:
    made("anna", name="plain", is_shared=True)
    made("anna", name="of data", query="q=data.order_id%3A4711", is_shared=True)
    made("anna", name="of secrets", query="q=x+data.a.password%3Ax", is_shared=True)
    sees, reveals = "view_job_data", "reveal_job_data"
    for rights, seen in (
        ([], ["plain"]),
        ([sees], ["of data", "plain"]),
        ([sees, reveals], ["of data", "of secrets", "plain"]),
    ):
        client = log_in(*JOBS, *rights, name=f"user {len(rights)}")
        assert offered(client) == seen
        page = get(client, PAGE)
        assert on_the_page(client) == seen
        assert ("4711" in page.html) == ("of data" in seen)


def test_many_views_are_a_few_and_a_link_and_one_query(anna: Client) -> None:
    def asked(address: str) -> tuple[Page, int]:
        with CaptureQueriesContext(connection) as captured:
            page = get(anna, address)
        return page, len(
            [1 for one in captured if "jobqueue_console_savedview" in one["sql"]]
        )

    assert asked(ARCHIVE)[1] == 1
    for number in range(20):
        made("anna", name=f"view {number:02}", query=f"q=n{number}")
    page, queries = asked(f"{ARCHIVE}?q=n17")
    assert queries == 1
    assert "view 11" in page.text
    assert "view 12" not in page.text
    assert page.all("a", **{"href": "?q=n17", "aria-current": "true"})
    assert "7 more" in page.text
    assert f"{PAGE}#jq-views-archivedjob" in page.links


@pytest.mark.urls("tests.admin.ops_urls")
def test_another_site_has_views_too(anna: Client) -> None:
    response = anna.post(reverse("admin:jobqueue_console_savedview_save"), said())
    where = reverse("admin:jobqueue_archivedjob_changelist")
    assert response.headers["Location"] == f"{where}?status=failed"
    assert where.startswith("/ops/")
