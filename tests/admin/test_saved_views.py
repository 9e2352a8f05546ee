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
from django.utils.http import urlencode

from django_jobqueue.admin.saved_views import view_page
from django_jobqueue.admin.saved_views.list_query import PASSING
from django_jobqueue.management.jobqueue.roles import ROLES
from django_jobqueue.models import AuditEntry, SavedView
from django_jobqueue.operations import saved_views
from tests.admin.conftest import LogIn
from tests.admin.endpoints import everything
from tests.admin.hostile import HOSTILE
from tests.admin.pages import Page, get, list_of, post
from tests.admin.scene import Scene

PAGE = "/admin/jobqueue/queuedjob/views/"
SEARCH = "/admin/jobqueue/queuedjob/search/"
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
    """The address of a list, or of the search."""
    return SEARCH if name == "search" else list_of(name)


def save(client: Client, **said: str) -> Page:
    """Save a view, and see the list again."""
    usual = {"list": "archivedjob", "query": "status=failed", "name": "Broken"}
    return post(client, f"{PAGE}save/", {**usual, **said})


def made(owner: str = "bert", **columns: Any) -> SavedView:
    """A view that somebody saved."""
    usual = {"list": "archivedjob", "query": "status=failed", "name": "Broken"}
    return SavedView.objects.create(owner=owner, **{**usual, **columns})


def named(page: Page) -> list[str]:
    """The views that a page names, in their order."""
    html = page.html.split('<ul class="jq-saved-views">')[-1].split('jq-views"')[-1]
    names = SavedView.objects.values_list("name", flat=True)
    return sorted({one for one in names if f">{one}</a>" in html}, key=html.index)


@pytest.mark.parametrize("name", LISTS)
def test_every_list_saves_what_it_shows_and_marks_it(
    anna: Client, scene: Scene, name: str
) -> None:
    here, query = address_of(name), LISTS[name]
    (form,) = get(anna, f"{here}?{query}").all("form", action=f"{PAGE}save/")
    assert form["method"] == "post"
    response = anna.post(
        f"{PAGE}save/", {"list": name, "query": query, "name": "Mine", "shared": "on"}
    )
    assert response.headers["Location"] == f"{here}?{query}"
    page = get(anna, response.headers["Location"])
    assert "The view “Mine” was saved." in page.text
    assert page.all("a", **{"href": f"?{query}", "aria-current": "true"})
    assert not page.all("form", action=f"{PAGE}save/")
    elsewhere = get(anna, here)
    assert {"href": f"?{query}"} in elsewhere.all("a", href=f"?{query}")
    assert not elsewhere.all("a", **{"href": f"?{query}", "aria-current": "true"})


def test_a_list_that_is_not_narrowed_offers_nothing(anna: Client, scene: Scene) -> None:
    assert "Save this view" not in get(anna, list_of("archivedjob")).text
    assert "Views" not in get(anna, list_of("archivedjob")).text


@pytest.mark.parametrize("model", ["queue"])
def test_a_list_that_cannot_be_narrowed_asks_for_no_views(
    anna: Client, scene: Scene, model: str
) -> None:
    with CaptureQueriesContext(connection) as captured:
        get(anna, list_of(model))
    assert not [one for one in captured if "jobqueue_savedview" in one["sql"]]


def test_the_page_is_left_out_and_the_order_of_conditions_is_all_the_same(
    anna: Client, scene: Scene
) -> None:
    passing = "&".join(f"{name}=1" for name in sorted(PASSING))
    save(anna, query=f"status=failed&{passing}&queue=&job_type=shop.add")
    (view,) = SavedView.objects.all()
    assert view.query == "job_type=shop.add&status=failed"
    page = get(anna, f"{list_of('archivedjob')}?status=failed&job_type=shop.add")
    assert page.all("a", **{"aria-current": "true", "href": f"?{view.query}"})


@pytest.mark.parametrize(
    "query",
    [
        "data__token__startswith=a",
        "status=failed&next=https://evil.example/",
        "error_message__icontains=x",
        "sort=hour",
        "state=ready",
        "q=a%00b",
        "&".join(f"a{number}=1" for number in range(2_000)),
    ],
)
def test_only_conditions_of_this_list_are_saved(
    anna: Client, scene: Scene, query: str
) -> None:
    response = anna.post(
        f"{PAGE}save/", {"list": "archivedjob", "query": query, "name": "x"}
    )
    assert response.headers["Location"] == list_of("archivedjob")
    assert "error" in get(anna, list_of("archivedjob")).html
    assert not SavedView.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "https://evil.example/",
        "//evil.example/?status=failed",
        "?status=failed",
        "javascript:alert(1)",
        "status=failed\r\nLocation: https://evil.example/",
        "status=failed#//evil.example",
    ],
)
def test_no_query_leads_away_from_the_list(
    anna: Client, scene: Scene, query: str
) -> None:
    response = anna.post(
        f"{PAGE}save/", {"list": "archivedjob", "query": query, "name": "x"}
    )
    where = urlsplit(response.headers["Location"])
    assert (where.scheme, where.netloc, where.path) == ("", "", list_of("archivedjob"))
    for view in SavedView.objects.all():
        assert view.query.startswith("status=failed")
        assert not {"\r", "\n", "#"} & set(view.query)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": " \t "}, "This field is required."),
        ({"name": "x" * 61}, "at most 60 characters"),
        ({"name": "a\x00b"}, "Null characters are not allowed."),
        ({"query": ""}, "There is nothing to save"),
        ({"query": "after=x"}, "There is nothing to save"),
        ({"query": f"q={'x' * 2_000}"}, "too long to be saved"),
        ({"query": "data__token=1"}, "This list has no such filter: data__token."),
    ],
)
def test_what_cannot_be_saved_is_told(
    anna: Client, scene: Scene, said: dict[str, str], text: str
) -> None:
    page = save(anna, **said)
    assert text in page.text
    assert not SavedView.objects.exists()


def test_nobody_saves_more_than_a_hundred(
    anna: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_page, "MOST", 2)
    made("anna", name="one")
    made("anna", name="two", list="queuedjob")
    made("bert", name="three")
    assert "You have 2 saved views. Delete one first." in save(anna).text
    assert "was replaced" in save(anna, name="one", query="status=expired").text
    assert SavedView.objects.count() == 3


def test_a_name_of_ones_own_replaces_the_view_and_keeps_it_shared(
    anna: Client, scene: Scene
) -> None:
    made("bert")
    save(anna, shared="on")
    page = save(anna, query="status=expired")
    assert "The view “Broken” was replaced." in page.text
    found = SavedView.objects.order_by("owner").values_list("query", "is_shared")
    assert list(found) == [("status=expired", True), ("status=failed", False)]


def test_views_are_private_until_they_are_shared(log_in: LogIn, scene: Scene) -> None:
    made(name="his")
    made(name="for all", is_shared=True)
    made(name="of others", list="queuedjob", is_shared=True)
    carl = log_in(*JOBS, name="carl")
    page = get(carl, list_of("archivedjob"))
    assert named(page) == ["for all"]
    assert "bert" in page.text
    both = get(carl, PAGE)
    assert "for all" in both.text
    assert "of others" in both.text
    assert "his" not in both.text.split()
    assert named(get(log_in(*JOBS), list_of("archivedjob"))) == ["for all", "his"]


def test_a_view_is_seen_by_those_who_see_its_list(log_in: LogIn, scene: Scene) -> None:
    made(name="for all", is_shared=True)
    client = log_in("view_queue", name="carl")
    assert "for all" not in get(client, PAGE).text
    get(log_in(name="dora"), PAGE, code=403)


def test_sharing_needs_its_right(log_in: LogIn, scene: Scene) -> None:
    client = log_in(*JOBS)
    page = get(client, f"{list_of('archivedjob')}?status=failed")
    assert "share with all" not in page.text
    response = client.post(
        f"{PAGE}save/",
        {"list": "archivedjob", "query": "status=failed", "name": "x", "shared": "on"},
    )
    assert response.status_code == 403
    view = made()
    post(client, f"{PAGE}edit/", {"view": view.pk, "name": "y", "shared": "on"})
    view.refresh_from_db()
    assert (view.name, view.is_shared) == ("y", False)
    assert SavedView.objects.count() == 1


def test_saving_needs_its_right_and_that_to_see_the_list(
    log_in: LogIn, scene: Scene
) -> None:
    said = {"list": "archivedjob", "query": "status=failed", "name": "x"}
    for rights in (("view_archivedjob",), ("add_savedview", "view_queue")):
        client = log_in(*rights, name=rights[0])
        assert client.post(f"{PAGE}save/", said).status_code == 403
    reader = get(log_in("view_archivedjob"), f"{list_of('archivedjob')}?status=failed")
    assert "Save this view" not in reader.text
    said["list"] = "nothing"
    assert log_in(*JOBS, name="d").post(f"{PAGE}save/", said).status_code == 403


@pytest.mark.parametrize(
    ("rights", "shared", "code"),
    [
        ((), False, 403),
        ((), True, 403),
        (("share_savedview",), True, 302),
        (("share_savedview",), False, 403),
    ],
)
def test_others_views_are_changed_by_those_who_share_if_they_see_them(
    log_in: LogIn, scene: Scene, rights: tuple[str, ...], shared: bool, code: int
) -> None:
    view = made(is_shared=shared)
    client = log_in(*JOBS, *rights, name="carl")
    said = {"view": view.pk, "name": "mine now", "shared": "on"}
    assert client.post(f"{PAGE}edit/", said).status_code == code
    assert client.post(f"{PAGE}delete/", said).status_code == code
    assert SavedView.objects.exists() == (code == 403)
    if code == 403:
        view.refresh_from_db()
        assert view.name == "Broken"


def test_a_superuser_does_not_see_what_is_private(anna: Client, scene: Scene) -> None:
    view = made()
    assert "Broken" not in get(anna, PAGE).text
    assert anna.post(f"{PAGE}delete/", {"view": view.pk}).status_code == 403


@pytest.mark.parametrize("sent", ["", "x", "-1", "9" * 18, "9" * 40, "²", "\x00", None])
def test_a_view_that_is_not_there_is_refused(
    anna: Client, scene: Scene, sent: str | None
) -> None:
    said = {"name": "x"} | ({} if sent is None else {"view": sent})
    for route in ("edit/", "delete/"):
        assert anna.post(PAGE + route, said).status_code == 403


def test_a_view_is_renamed_shared_and_deleted(anna: Client, scene: Scene) -> None:
    view = made("anna")
    page = post(
        anna, f"{PAGE}edit/", {"view": view.pk, "name": " Lost ", "shared": "on"}
    )
    assert "The view “Lost” was changed." in page.text
    view.refresh_from_db()
    assert (view.name, view.is_shared) == ("Lost", True)
    page = post(anna, f"{PAGE}delete/", {"view": view.pk})
    assert "The view “Lost” was deleted." in page.text
    assert "There are no saved views." in page.text


def test_a_name_is_not_taken_twice(anna: Client, scene: Scene) -> None:
    made("anna", name="Lost")
    view = made("anna")
    page = post(anna, f"{PAGE}edit/", {"view": view.pk, "name": "Lost"})
    assert "There is another view “Lost”." in page.text
    page = post(anna, f"{PAGE}edit/", {"view": view.pk, "name": ""})
    assert "This field is required." in page.text
    view.refresh_from_db()
    assert view.name == "Broken"


def test_who_may_no_longer_share_changes_nothing_that_others_see(
    log_in: LogIn, scene: Scene
) -> None:
    made(is_shared=True)
    page = save(log_in(*JOBS), query="status=expired")
    assert "“Broken” is shared, and you may not share" in page.text
    assert SavedView.objects.get().query == "status=failed"


def test_a_view_whose_filters_are_gone_says_so(anna: Client, scene: Scene) -> None:
    made("anna", name="Old", query="colour=red&status=failed")
    made("anna", name="Worse", query="&".join(f"a{n}=1" for n in range(1_500))[:2_000])
    for address in (list_of("archivedjob"), PAGE):
        page = get(anna, address)
        assert "Old the list no longer has colour" in page.text
        assert not [link for link in page.links if "colour" in link]


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("archivedjob", "status=nothing"),
        ("archivedjob", "q=data.%3A%3A"),
        ("archivedjob", "finished_at__range__gte_0=never"),
        ("archivedjob", "fingerprint=x"),
        ("failuregroup", "sort=nothing"),
        ("worker", "state=nothing"),
        ("search", "q=%22"),
    ],
)
def test_a_value_that_is_gone_gives_a_page(
    anna: Client, scene: Scene, name: str, query: str
) -> None:
    made("anna", list=name, query=query)
    assert f"?{query}" in get(anna, address_of(name)).links
    response = anna.get(f"{address_of(name)}?{query}", follow=True)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("rights", "seen"),
    [
        ((), ["plain"]),
        (("view_job_data",), ["of data", "plain"]),
        (("view_job_data", "reveal_job_data"), ["of data", "of secrets", "plain"]),
    ],
)
def test_a_search_for_data_is_shown_to_those_who_see_data(
    log_in: LogIn, scene: Scene, rights: tuple[str, ...], seen: list[str]
) -> None:
    made("anna", name="plain", is_shared=True)
    made("anna", name="of data", query="q=data.order_id%3A4711", is_shared=True)
    made("anna", name="of secrets", query="q=x+data.a.password%3Ax", is_shared=True)
    client = log_in(*JOBS, *rights, name="carl")
    names = ("of data", "of secrets", "plain")
    for address in (list_of("archivedjob"), PAGE):
        page = get(client, address)
        assert [name for name in names if name in page.text] == seen
        assert ("4711" in page.html) == ("of data" in seen)


def test_what_is_shared_is_recorded_without_its_conditions(
    anna: Client, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="django_jobqueue.operations")
    save(anna, name="private", query="q=Chiara")
    assert not caplog.records
    save(anna, name="for all", query="q=Chiara", shared="on")
    view = SavedView.objects.get(name="for all")
    post(anna, f"{PAGE}edit/", {"view": view.pk, "name": "not for all"})
    post(anna, f"{PAGE}edit/", {"view": view.pk, "name": "hidden"})
    save(anna, name="again", query="q=Chiara", shared="on")
    post(anna, f"{PAGE}delete/", {"view": SavedView.objects.get(name="again").pk})
    acts = AuditEntry.objects.order_by("id").values_list("verb", "by", "details")
    assert list(acts) == [
        ("save view", "anna", {"list": "archivedjob", "view": "for all"}),
        ("change view", "anna", {"list": "archivedjob", "view": "not for all"}),
        ("save view", "anna", {"list": "archivedjob", "view": "again"}),
        ("delete view", "anna", {"list": "archivedjob", "view": "again"}),
    ]
    assert "Chiara" not in caplog.text


def test_the_page_of_views_masks_secrets(anna: Client, scene: Scene) -> None:
    made("anna", query="q=password%3Dhunter2")
    assert "hunter2" not in get(anna, PAGE).text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_name_stays_text(anna: Client, scene: Scene, text: str) -> None:
    def shapes() -> list[set[tuple[str, ...]]]:
        pages = [get(anna, one) for one in (list_of("archivedjob"), PAGE)]
        assert all(text[:60] in page.text for page in pages[:seen])
        return [
            {(tag, *sorted(attributes)) for tag, attributes in page.elements}
            for page in pages
        ]

    seen = 0
    made("anna", name="x", query="q=x")
    made("bert", name="y", query="q=y", is_shared=True)
    harmless = shapes()
    made("anna", name=text[:60], query=urlencode({"q": text}))
    made(text[:150], name=text[:60], query=urlencode({"q": text}), is_shared=True)
    seen = 2
    assert shapes() == harmless


def test_many_views_are_a_few_and_a_link(anna: Client, scene: Scene) -> None:
    for number in range(20):
        made("anna", name=f"view {number:02}", query=f"q=n{number}")
    page = get(anna, f"{list_of('archivedjob')}?q=n17")
    assert "view 11" in page.text
    assert "view 12" not in page.text
    assert page.all("a", **{"href": "?q=n17", "aria-current": "true"})
    assert "7 more" in page.text
    assert f"{PAGE}#jq-views-archivedjob" in page.links


def test_however_many_views_a_list_asks_once(anna: Client, scene: Scene) -> None:
    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            get(anna, list_of("archivedjob"))
        return len([1 for one in captured if "jobqueue_savedview" in one["sql"]])

    assert asked() == 1
    for number in range(20):
        made(f"user {number}", is_shared=True, query=f"q=data.a%3A{number}")
    assert asked() == 1


@pytest.mark.django_db(transaction=True)
def test_private_views_go_with_their_user_and_shared_ones_stay() -> None:
    user = get_user_model().objects.create_user("bert", is_staff=True)
    made(name="his")
    made(name="for all", is_shared=True)
    made("carl", name="other")
    user.delete()
    assert sorted(SavedView.objects.values_list("name", flat=True)) == [
        "for all",
        "other",
    ]


@pytest.mark.django_db(transaction=True)
def test_a_user_is_deleted_whatever_the_job_queue_says(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> int:
        raise RuntimeError("no table")

    user = get_user_model().objects.create_user("bert", is_staff=True)
    monkeypatch.setattr(saved_views, "forget", fail)
    user.delete()
    assert not get_user_model().objects.exists()
    assert "no table" in caplog.text


def test_a_viewer_writes_nothing_but_views(log_in: LogIn, scene: Scene) -> None:
    client = log_in(*ROLES["Job viewer"])
    before = everything()
    save(client)
    view = SavedView.objects.get()
    post(client, f"{PAGE}edit/", {"view": view.pk, "name": "Lost"})
    assert everything() == before | {
        "jobqueue.SavedView": list(SavedView.objects.values())
    }
    post(client, f"{PAGE}delete/", {"view": view.pk})
    assert everything() == before


def test_an_operator_shares(log_in: LogIn, scene: Scene) -> None:
    rights = [*ROLES["Job viewer"], *ROLES["Job operator"]]
    assert "was saved" in save(log_in(*rights), shared="on").text
    assert SavedView.objects.get().is_shared


@pytest.mark.urls("tests.admin.ops_urls")
def test_another_site_has_views_too(anna: Client, scene: Scene) -> None:
    save_there = reverse("admin:jobqueue_views_save")
    said = {"list": "archivedjob", "query": "status=failed", "name": "x"}
    response = anna.post(save_there, said)
    where = reverse("admin:jobqueue_archivedjob_changelist")
    assert response.headers["Location"] == f"{where}?status=failed"
    assert where.startswith("/ops/")
