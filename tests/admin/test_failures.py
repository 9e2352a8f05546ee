"""Failure groups: figures against rows made by hand, decisions, and all their jobs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.failures.failure_groups import FailureGroupAdmin
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    Failure,
    FailureGroup,
    FailureRollup,
    JobType,
)
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, get, page_of, select
from tests.admin.scene import ADD, FAIL, archived, queued
from tests.admin.units import (
    act,
    answer,
    buttons,
    following,
    listing,
    press,
    problems,
    shown,
)

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
MODEL = "failuregroup"
LIST = "/admin/jobqueue/failuregroup/"
DECIDES = (*VIEWS, "change_failuregroup")
REPLAYS = ("view_bulkoperation", "start_bulkoperation", "replay_archivedjob")


def group(name: str = "shop.PayError", **columns: Any) -> UUID:
    key = uuid4()
    values = {"frame": "shop.pay:charge", "template": "card <n> is refused"}
    known = {"fingerprint": key, "coarse": key, "error_class": name}
    FailureGroup.objects.create(**{**known, **values, **columns})
    return key


def failure(fingerprint: UUID, job: UUID | None = None, **columns: Any) -> None:
    values = {"job_type": FAIL, "number": 1, "end": "failed", "worker": "web-1:7"}
    known = {"fingerprint": fingerprint, "job_id": job or uuid4()}
    Failure.objects.create(**{**known, **values, **columns})


def hours(fingerprint: UUID, **counts: tuple[int, int]) -> None:
    """Insert roll-ups: ``hours(id, h3=(1, 2))`` is three hours ago."""
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    FailureRollup.objects.bulk_create(
        FailureRollup(
            fingerprint=fingerprint,
            bucket=now - int(name[1:]) * HOUR,
            failed=failed,
            retried=retried,
        )
        for name, (failed, retried) in counts.items()
    )


def ago(**span: float) -> datetime:
    return timezone.now() - timedelta(**span)


def labels(page: Page) -> list[str]:
    """What drawings say to those who cannot see them."""
    return [str(svg["aria-label"]) for svg in page.all("svg", role="img")]


def operation_url(name: str, fingerprint: UUID) -> str:
    return reverse(f"admin:jobqueue_failuregroup_{name}", args=[fingerprint])


# The list.


def test_the_list_has_the_figures_of_each_group(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay = group(last_seen=ago(minutes=1), first_seen=ago(days=3), assignee="bert")
    mail = group("smtp.MailError", last_seen=ago(minutes=9))
    for _ in range(3):
        archived(FAIL, "failed", fingerprint=pay)
    archived(ADD, "failed", fingerprint=mail)
    waits = [queued(FAIL, attempts=1) for _ in range(3)]
    for job in waits:
        failure(pay, job, release="r2")
    failure(pay, release="r1", job_type=ADD, finished_at=ago(hours=2))
    failure(mail)
    # A job that failed otherwise since does not wait for this.
    other = queued(FAIL, attempts=2)
    failure(mail, other, finished_at=ago(hours=2))
    failure(pay, other, number=2, finished_at=ago(hours=1))
    hours(pay, h0=(1, 2), h5=(3, 0), h23=(0, 4), h24=(50, 50))

    with CaptureQueriesContext(connection) as captured:
        page = get(anna, LIST)
    assert page.rows == [str(pay), str(mail)]
    assert "shop.PayError: card <n> is refused" in [
        span["title"] for span in page.all("span", **{"class": "jq-error"})
    ]
    assert re.findall(r'role="img"[^>]*><title>([^<]+)', page.html) == [
        "Last 24 hours: 4 failed, 6 retried.",
        "Last 24 hours: 0 failed, 0 retried.",
    ]
    assert f"/admin/jobqueue/archivedjob/?fingerprint={pay}" in page.links
    assert f"/admin/jobqueue/queuedjob/?q=group%3A{pay}" in page.links
    assert not [link for link in page.links if f"group%3A{mail}" in link]
    for text in ("bert", ADD, FAIL, "r1 , r2", "3 d", "9 m ago"):
        assert text in page.text
    rows = page.html.split("<tr>")
    assert [">3</a>" in row for row in rows if "_selected_action" in row] == [
        True,
        False,
    ]
    expected = {*map(str, waits), str(other)}
    assert {*shown(anna, "queuedjob", q=f"group:{pay}")} == expected
    read = [query["sql"] for query in captured.captured_queries]
    for column in ("data", "traceback", "error_message", "notes"):
        assert not [sql for sql in read if re.search(rf'("|\.){column}\b', sql)]

    for name in ("store.reading.failure_stats", "admin.failures.failure_list"):
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_COUNTED", 2)
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_SAMPLED", 2)
    texts = get(anna, LIST).texts
    assert "2+" in texts
    assert "≥ 2" in texts


def test_each_state_is_a_tab_and_said_in_words(anna: Client) -> None:
    ignored = {"state": "ignored"}
    states = {
        "open": group(last_seen=ago(minutes=1)),
        "regressed": group(last_seen=ago(minutes=2), regressed_at=ago(minutes=2)),
        "resolved": group(last_seen=ago(minutes=3), state="resolved", resolved_in="r7"),
        "ignored": group(last_seen=ago(minutes=4), **ignored),
        "for an hour": group(
            last_seen=ago(minutes=5), **ignored, ignored_until=ago(hours=-1)
        ),
        "no longer": group(
            last_seen=ago(minutes=6), **ignored, ignored_until=ago(hours=1)
        ),
    }
    for state, names in {
        "open": ["open", "regressed", "no longer"],
        "regressed": ["regressed"],
        "resolved": ["resolved"],
        "ignored": ["ignored", "for an hour"],
        "gone": [],
    }.items():
        expected = [str(states[name]) for name in names]
        assert shown(anna, MODEL, state=state) == expected, state
    page = get(anna, LIST, state="all", sort="day")
    assert page.rows == [str(key) for key in states.values()]
    for words in (
        "Open 3 Regressed 1 Resolved 1 Ignored 2 All 6",
        "regressed",
        "resolved in r7",
        "open: no longer ignored",
        "ignored until 20",
    ):
        assert words in page.text
    (link,) = [link for link in page.links if "state=ignored" in link]
    assert "sort=day" in link


def test_pages_of_every_order_show_each_group_once_and_lead_back(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FailureGroupAdmin, "list_per_page", 3)
    keys = [group(first_seen=ago(minutes=n), last_seen=ago()) for n in range(12)]
    for number, key in enumerate(keys):
        hours(key, h0=(number // 3, 0))
    for order in ("", "hour", "day", "new", "types"):
        pages = [listing(anna, MODEL, **({"sort": order} if order else {}))]
        while pages[-1].has_older:
            pages.append(following(anna, MODEL, pages[-1].older_link))
        rows = [[row.pk for row in page.result_list] for page in pages]
        assert [*map(len, rows)] == [3, 3, 3, 3], order
        found = [key for page in rows for key in page]
        assert sorted(found) == sorted(keys), order
        if order in ("hour", "day"):
            ranks = [keys.index(key) // 3 for key in found]
            assert ranks == sorted(ranks, reverse=True), order
        back = following(anna, MODEL, pages[1].newer_link).result_list
        assert [row.pk for row in back] == rows[0], order
    page = get(anna, LIST)
    assert "12 failure groups" in page.text
    assert len(page.all("a", rel="next")) == 1


def test_the_list_is_narrowed_and_searched(anna: Client) -> None:
    long_ago = datetime(2026, 3, 1, tzinfo=timezone.get_default_timezone())
    mine, hers = group(assignee="anna"), group("x.Y", assignee="zoe", template="no")
    crash = group("jobqueue.WorkerLost", frame=ADD, template="", last_seen=long_ago)
    archived(FAIL, "failed", fingerprint=mine)
    archived(ADD, "succeeded")
    today = f"{ago(hours=1):%Y-%m-%d}"
    for query, found in [
        ({"assignee": "anna"}, [mine]),
        ({"assignee": "zoe"}, [hers]),
        ({"assignee": "-"}, [crash]),
        ({"job_type": FAIL}, [mine]),
        ({"job_type": ADD}, [crash]),
        ({"last_seen__range__gte_0": today}, [mine, hers]),
        ({"q": "PayErr"}, [mine]),
        ({"q": "shop.pay"}, [mine, hers]),
        ({"q": "card <n>"}, [mine]),
        ({"q": "CARD"}, [mine]),
        ({"q": "refused"}, [mine]),
        ({"q": "%"}, []),
        ({"q": str(hers)}, [hers]),
    ]:
        assert {*shown(anna, MODEL, **query)} == {*map(str, found)}, query
    page = get(anna, LIST, last_seen__range__gte_0="soon")
    assert page.rows == []
    assert "is not a date" in page.text
    assert [link for link in page.links if "assignee=zoe" in link]


# The page of a group.


def test_the_page_says_where_it_occurs(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay = group()
    over = archived(FAIL, "failed", fingerprint=pay, queue="mail")
    newest = {"release": "2026.11.3", "finished_at": ago(minutes=1)}
    for number in range(38):
        failure(pay, over, error_message=f"card {number % 7}", **newest)
    failure(pay, over, job_type=ADD, worker="web-2:9", **newest)
    failure(pay, release="2026.11.2", worker="web-2:9", finished_at=ago(days=1))
    hours(pay, h0=(1, 0), h23=(2, 0), h24=(4, 1), h167=(8, 0), h168=(16, 0))
    hours(pay, h719=(32, 0), h720=(64, 0))
    page = get(anna, page_of(MODEL, pay))
    for text in (
        "Of all 40 stored failures.",
        f"Job type Failures Share {FAIL} 39 97.5 %",
        "Queue Failures Share mail 39 97.5 % unknown 1 2.5 %",
        "Host Failures Share web-1 38 95.0 % web-2 2 5.0 %",
        "95.0 % of them happened on web-1.",
        "97.5 % of them carry release 2026.11.3.",
    ):
        assert text in page.text
    assert len(page.all("li", **{"class": "jq-message"})) == 5
    assert labels(page) == [
        "24 hours: 3 failed, 0 retried.",
        "7 days: 15 failed, 1 retried.",
        "30 days: 63 failed, 1 retried.",
    ]
    for name in ("store.reading.failure_stats", "admin.failures.failure_page"):
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_BROKEN_DOWN", 2)
    text = get(anna, page_of(MODEL, pay)).text
    assert "Of the newest 2 failures." in text
    assert "100 % of them carry release 2026.11.3." in text


def test_who_may_see_groups_only_is_shown_no_job(log_in: LogIn) -> None:
    pay = group()
    client = log_in("view_failuregroup")
    text = get(client, page_of(MODEL, pay)).text
    assert "Latest failure" not in text  # there is none yet
    assert "Where it occurs" not in text
    archived(FAIL, "failed", fingerprint=pay)
    failure(pay, queued(FAIL, attempts=1))
    for page in (get(client, LIST), get(client, page_of(MODEL, pay))):
        assert not [
            link for link in page.links if "job/" in link and "find" not in link
        ]
        assert page.all("button", formmethod="post") == []


# Decisions.


def test_groups_are_resolved_together(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    one, two = group(), group(regressed_at=ago(hours=1))
    page = select(anna, MODEL, "resolve", one, two)
    assert "Resolve 2 failure groups?" in page.text
    assert FailureGroup.objects.filter(state="open").count() == 2
    (seen,) = (box["value"] for box in page.all("input", name="seen"))
    said = {"in_release": "r8", "seen": seen}
    told = act(anna, MODEL, "resolve", one, two, **said)
    assert told == "2 failure groups were resolved."
    decided = FailureGroup.objects.values_list("state", "resolved_in", "changed_by")
    assert [*decided] == [("resolved", "r8", "anna")] * 2
    entries = {e.object_id: e.get_change_message() for e in LogEntry.objects.all()}
    assert entries == dict.fromkeys((str(one), str(two)), "Resolved in release r8.")
    assert [told["verb"] for told in operated] == ["resolve failures"]
    # What regressed since the page was made stays open.
    FailureGroup.objects.update(state="open", regressed_at=timezone.now())
    assert act(anna, MODEL, "resolve", one, **said) == (
        "1 was skipped: it changed meanwhile."
    )
    assert FailureGroup.objects.get(pk=one).state == "open"


def test_a_group_is_ignored_for_a_while_reopened_assigned_and_noted(
    anna: Client,
) -> None:
    pay = group()
    until = timezone.localtime() + HOUR
    said = {"until": f"{until:%Y-%m-%dT%H:%M}"}
    assert act(anna, MODEL, "ignore", pay, **said) == ("1 failure group was ignored.")
    row = FailureGroup.objects.get()
    until = until.replace(second=0, microsecond=0)
    assert (row.state, row.ignored_until) == ("ignored", until)
    assert act(anna, MODEL, "reopen", pay) == "1 failure group is open again."
    assert FailureGroup.objects.get().state == "open"
    asked = get(anna, reverse("admin:jobqueue_failuregroup_assign"), keys=pay)
    assert asked.all("option", value="anna")
    act(anna, MODEL, "assign", pay, assignee="on call")
    act(anna, MODEL, "note", pay, text="a <b>bold</b> password=hunter2secret")
    row = FailureGroup.objects.get()
    assert row.assignee == "on call"
    assert row.notes.endswith("anna\na <b>bold</b> password=hunter2secret")
    page = get(anna, page_of(MODEL, pay))
    assert "a <b>bold</b> " in page.text
    assert "hunter2secret" not in page.html
    history = [e.get_change_message() for e in LogEntry.objects.order_by("pk")]
    assert history[0].startswith("Ignored until 20")
    assert history[1:] == ["Reopened.", "Assigned to on call.", "Added a note."]


def test_a_decision_that_cannot_be_is_refused(anna: Client) -> None:
    pay = group()
    for verb, said, problem in [
        ("ignore", {"until": "2020-01-01T00:00"}, "This moment is in the past."),
        ("resolve", {"in_release": "x" * 101}, "at most 100 characters"),
        ("resolve", {"seen": "yesterday"}, "This is not a valid time."),
        ("resolve", {"seen": "2026-01-01T00:00"}, "This is not a valid time."),
        ("assign", {"assignee": "a\x00b"}, "Null characters are not allowed."),
        ("note", {"text": ""}, "This field is required."),
    ]:
        assert problem in problems(anna, MODEL, verb, pay, **said)
    assert FailureGroup.objects.get().changed_at is None


def test_the_page_and_the_menu_offer_what_makes_sense(
    anna: Client, log_in: LogIn
) -> None:
    verbs = {"resolve", "ignore", "reopen", "assign", "note"}
    for state, absent in (
        ("open", {"reopen"}),
        ("resolved", {"resolve"}),
        ("ignored", {"ignore"}),
    ):
        found = buttons(anna, MODEL, group(state=state)) & verbs
        assert found == verbs - absent, state
    client = log_in(*DECIDES, "start_bulkoperation", "cancel_queuedjob")
    offered = {option.get("value") for option in get(client, LIST).all("option")}
    assert {"cancel_jobs", "resolve"} <= offered
    assert not {"replay_jobs", "prune_jobs"} & offered


# All jobs of a group, or of some.

OPERATIONS = {
    "replay-jobs": ("replay", Table.ARCHIVED, "replay_archivedjob"),
    "resolve-and-replay": ("replay", Table.ARCHIVED, "replay_archivedjob"),
    "cancel-jobs": ("cancel", Table.QUEUED, "cancel_queuedjob"),
    "prune-jobs": ("prune", Table.ARCHIVED, "prune_archivedjob"),
}


def test_all_jobs_of_selected_groups_are_one_operation(anna: Client) -> None:
    one, two, three = (group() for _ in range(3))
    for fingerprint in (one, two, three):
        archived(FAIL, "failed", fingerprint=fingerprint)
        failure(fingerprint, queued(FAIL, attempts=1))
    for name, keys, of_what in (
        ("replay_jobs", (one, two), "2 failure groups · status: failed"),
        ("prune_jobs", (one, two), "2 failure groups"),
        ("cancel_jobs", (one, two), "2 failure groups"),
        ("replay_jobs", (three,), f"failure group: {three} · status: failed"),
    ):
        chosen = {"action": name, "index": 0, "_selected_action": [*map(str, keys)]}
        answer(anna, LIST, chosen)
        made = BulkOperation.objects.latest("created_at")
        asked = answer(anna, page_of("bulkoperation", made.pk)).context_data
        named = of_what.replace(str(three), str(FailureGroup.objects.get(pk=three)))
        assert str(asked["question"].facts[0]) == f"Filter: {named}."
        found = (made.state, made.total, f"{made.kind}_jobs")
        assert found == ("draft", len(keys), name)
        value = Selection.from_json(made.selection).terms[0].value
        assert value == keys[0] if len(keys) == 1 else set(value) == set(keys)
    assert ArchivedJob.objects.count() == 3


def test_an_operation_on_all_jobs_needs_its_rights_and_is_drafted(
    log_in: LogIn,
) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    archived(FAIL, "failed", fingerprint=uuid4())
    failure(pay, queued(FAIL, attempts=1))
    starts = "start_bulkoperation"
    only_starts = log_in(*DECIDES, starts, name="starts")
    for name, (kind, table, right) in OPERATIONS.items():
        url = operation_url(name, pay)
        no_bulk = log_in(*DECIDES, right, name=f"{name} no bulk")
        blind = log_in(right, starts, name=f"{name} blind")
        for client in (no_bulk, only_starts, blind):
            assert client.post(url).status_code == 403, name
        client = log_in(*DECIDES, right, starts, "view_bulkoperation", name=name)
        assert client.get(url).status_code == 405, name
        assert client.post(url).status_code == 302, name
        made = BulkOperation.objects.get()
        terms = [Term("group", pay)]
        if kind == "replay":
            terms.append(Term("status", "failed"))
        assert Selection.from_json(made.selection) == Selection(table, tuple(terms))
        assert (made.kind, made.state, made.total) == (kind, "draft", 1)
        assert made.created_by == name
        assert "It is gone." in press(client, operation_url(name, uuid4()))
        made.delete()
    assert ArchivedJob.objects.count() == 2
    assert FailureGroup.objects.get().state == "open"
    assert LogEntry.objects.count() == 0


def start(client: Client, **said: str) -> str:
    address = page_of("bulkoperation", BulkOperation.objects.latest("created_at").pk)
    if "shown" not in said:
        form = answer(client, address).context_data["form"]
        said["shown"] = form["shown"].value()
    said = {"expires": "same", "skip_replayed": "any", **said}
    return press(client, address.replace("/change/", "/start/"), **said)


def test_resolve_and_replay_resolves_when_the_replay_starts(anna: Client) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    url = operation_url("resolve-and-replay", pay)
    (box,) = get(anna, page_of(MODEL, pay)).all("input", name="seen")
    press(anna, url)
    asked = answer(anna, page_of("bulkoperation", BulkOperation.objects.get().pk))
    warnings = str(asked.context_data["question"].warnings)
    assert "When this starts, the failure group is resolved: " in warnings
    assert FailureGroup.objects.get().state == "open"
    start(anna)
    row = FailureGroup.objects.get()
    assert (row.state, row.changed_by) == ("resolved", "anna")
    entries = LogEntry.objects.filter(object_id=str(pay))
    assert [entry.get_change_message() for entry in entries] == ["Resolved."]
    # One that is seen again meanwhile stays open.
    BulkOperation.objects.all().delete()
    FailureGroup.objects.update(state="open")
    press(anna, url)
    FailureGroup.objects.update(regressed_at=timezone.now())
    again = "has recurred meanwhile, so its group stays open"
    assert again in start(anna)
    assert FailureGroup.objects.get().state == "open"
    assert BulkOperation.objects.get().state == "queued"
    assert again in press(anna, url, seen=box["value"])
    assert BulkOperation.objects.count() == 1


def test_to_resolve_and_replay_needs_the_right_to_resolve(
    anna: Client, log_in: LogIn
) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    client = log_in(*VIEWS, *REPLAYS)
    assert client.post(operation_url("resolve-and-replay", pay)).status_code == 403
    page = get(client, page_of(MODEL, pay))
    actions = [str(b["formaction"]) for b in page.all("button", formmethod="post")]
    assert actions == [operation_url("replay-jobs", pay)]
    press(anna, operation_url("resolve-and-replay", pay))
    address = page_of("bulkoperation", BulkOperation.objects.get().pk)
    with pytest.raises(PermissionDenied):  # to start such a draft, too
        answer(client, address.replace("/change/", "/start/"), {})
    assert FailureGroup.objects.get().state == "open"


# The draft that replays the failed jobs of a group, and what came of it.


@pytest.fixture
def replayed() -> UUID:
    """A group with two failed jobs, of a type that is paused."""
    key = group("builtins.OSError", frame="shop:pay", template="")
    JobType.objects.filter(name=ADD).update(summary="sum of {a}")
    for number in (11, 12):
        archived(ADD, "failed", fingerprint=key, data={"a": number})
    operations.pause([ADD, FAIL], reason="the bank is closed", by="carl")
    return key


def newest() -> BulkOperation:
    return BulkOperation.objects.latest("created_at")


def drafted(client: Client, key: UUID) -> Page:
    press(client, operation_url("replay-jobs", key))
    return get(client, page_of("bulkoperation", newest().pk))


def is_paused(name: str = ADD) -> bool:
    return JobType.objects.get(name=name).paused


def test_a_paused_type_is_resumed_with_the_replay_if_that_is_chosen(
    anna: Client, log_in: LogIn, replayed: UUID
) -> None:
    page = drafted(anna, replayed)
    assert f"Resume {ADD}" in page.text
    assert f"Resume {FAIL}" not in page.text  # of other jobs
    start(anna)
    assert (newest().state, is_paused()) == ("queued", True)
    # Nobody resumes what they may not.
    client = log_in("view_failuregroup", "view_archivedjob", "view_jobtype", *REPLAYS)
    page = drafted(client, replayed)
    assert "Paused, so that the new jobs will wait" in page.text
    assert f"Resume {ADD}" not in page.text
    start(client, resume="on")
    assert (newest().state, is_paused()) == ("queued", True)

    drafted(anna, replayed)
    start(anna, resume="on")
    assert (newest().state, is_paused(), is_paused(FAIL)) == ("queued", False, True)
    acts = AuditEntry.objects.values_list("verb", "by", "about")
    assert ("resume", "anna", [ADD]) in list(acts)
    assert LogEntry.objects.filter(object_id=ADD).exists()
    # What is started twice resumes nothing.
    operations.pause([ADD], reason="it is closed again", by="carl")
    assert "already started or discarded" in start(anna, shown="2", resume="on")
    assert is_paused()


def test_draft_and_operation_name_the_group_and_what_its_jobs_are_about(
    anna: Client, log_in: LogIn, replayed: UUID
) -> None:
    text = drafted(anna, replayed).text
    for said in (
        "failure group: builtins.OSError in shop:pay",
        "sum of 11",
        "sum of 12",
    ):
        assert said in text
    client = log_in("view_failuregroup", "view_archivedjob", *REPLAYS)
    assert "sum of" not in drafted(client, replayed).text
    start(anna)
    address = page_of("bulkoperation", newest().pk)
    assert page_of("failuregroup", replayed) in get(anna, address).links
    blind = log_in("view_bulkoperation", "view_archivedjob", name="blind")
    assert page_of("failuregroup", replayed) not in get(blind, address).links
