"""Failure groups: figures against rows made by hand, decisions, and all their jobs."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import (
    ArchivedJob,
    BulkOperation,
    Failure,
    FailureGroup,
    FailureRollup,
)
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import Page, confirm, get, page_of, post, select
from tests.admin.scene import ADD, FAIL, archived, queued
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

HOUR = timedelta(hours=1)
LIST = "/admin/jobqueue/failuregroup/"
DECIDES = (*VIEWS, "change_failuregroup")


def group(name: str = "shop.PayError", **columns: Any) -> UUID:
    """Insert a group; returns its fingerprint."""
    fingerprint = uuid4()
    defaults = {"frame": "shop.pay:charge", "template": "card <n> is refused"}
    FailureGroup.objects.create(
        fingerprint=fingerprint,
        coarse=fingerprint,
        error_class=name,
        **{**defaults, **columns},
    )
    return fingerprint


def failure(fingerprint: UUID, job: UUID | None = None, **columns: Any) -> None:
    """Insert a failed attempt."""
    defaults = {"job_type": FAIL, "number": 1, "end": "failed", "worker": "web-1:7"}
    Failure.objects.create(
        fingerprint=fingerprint, job_id=job or uuid4(), **{**defaults, **columns}
    )


def hours(fingerprint: UUID, **counts: tuple[int, int]) -> None:
    """Insert roll-ups: ``hours(id, h3=(1, 2))`` is three hours ago."""
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    for name, (failed, retried) in counts.items():
        FailureRollup.objects.create(
            fingerprint=fingerprint,
            bucket=now - int(name[1:]) * HOUR,
            failed=failed,
            retried=retried,
        )


def ago(**span: float) -> datetime:
    """A moment in the past."""
    return timezone.now() - timedelta(**span)


def listed(page: Page) -> list[str]:
    """The fingerprints of a list, in its order."""
    return page.rows


def labels(page: Page) -> list[str]:
    """What drawings say to those who cannot see them."""
    return [str(svg["aria-label"]) for svg in page.all("svg", role="img")]


def operation_url(name: str, fingerprint: UUID) -> str:
    """The address of an operation on all jobs of a group."""
    return reverse(f"admin:jobqueue_failuregroup_{name}", args=[fingerprint])


# The list.


def test_the_list_has_the_figures_of_each_group(anna: Client) -> None:
    pay = group(last_seen=ago(minutes=1), first_seen=ago(days=3), assignee="bert")
    mail = group("smtp.MailError", last_seen=ago(minutes=9))
    for _ in range(3):
        archived(FAIL, "failed", fingerprint=pay)
    archived(ADD, "failed", fingerprint=mail)
    waits = queued(FAIL, attempts=1)
    failure(pay, waits, release="r2")
    failure(pay, release="r1", job_type=ADD)
    failure(mail)
    hours(pay, h0=(1, 2), h5=(3, 0), h23=(0, 4), h24=(50, 50))

    page = get(anna, LIST)
    assert listed(page) == [str(pay), str(mail)]
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
    assert listed(get(anna, "/admin/jobqueue/queuedjob/", q=f"group:{pay}")) == [
        str(waits)
    ]


def test_counts_stop_where_they_would_cost(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("store.reading.failure_stats", "admin.failures.failure_list"):
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_COUNTED", 2)
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_SAMPLED", 2)
    pay = group()
    for _ in range(3):
        archived(FAIL, "failed", fingerprint=pay)
        failure(pay, queued(FAIL, attempts=1))
    page = get(anna, LIST)
    assert "2+" in page.texts
    assert "≥ 2" in page.texts


def test_a_job_that_failed_otherwise_since_does_not_wait_for_this(
    anna: Client,
) -> None:
    pay, other = group(), group()
    job = queued(FAIL, attempts=2)
    failure(pay, job)
    failure(other, job, number=2)
    links = get(anna, LIST).links
    assert [link for link in links if f"group%3A{other}" in link]
    assert not [link for link in links if f"group%3A{pay}" in link]


@pytest.fixture
def states(db: None) -> dict[str, UUID]:
    """A group of each state."""
    return {
        "open": group(last_seen=ago(minutes=1)),
        "regressed": group(last_seen=ago(minutes=2), regressed_at=ago(minutes=2)),
        "resolved": group(last_seen=ago(minutes=3), state="resolved", resolved_in="r7"),
        "ignored": group(last_seen=ago(minutes=4), state="ignored"),
        "for an hour": group(
            last_seen=ago(minutes=5), state="ignored", ignored_until=ago(hours=-1)
        ),
        "no longer": group(
            last_seen=ago(minutes=6), state="ignored", ignored_until=ago(hours=1)
        ),
    }


@pytest.mark.parametrize(
    ("state", "names"),
    [
        ("open", ["open", "regressed", "no longer"]),
        ("regressed", ["regressed"]),
        ("resolved", ["resolved"]),
        ("ignored", ["ignored", "for an hour"]),
        ("gone", []),
    ],
)
def test_each_state_is_a_tab(
    anna: Client, states: dict[str, UUID], state: str, names: list[str]
) -> None:
    page = get(anna, LIST, state=state)
    assert listed(page) == [str(states[name]) for name in names]
    assert "Open 3 Regressed 1 Resolved 1 Ignored 2 All 6" in page.text


def test_states_are_said_in_words(anna: Client, states: dict[str, UUID]) -> None:
    text = get(anna, LIST, state="all").text
    for words in (
        "regressed",
        "resolved in r7",
        "open: no longer ignored",
        "ignored until 20",
    ):
        assert words in text


def test_the_list_is_paged_by_its_key(anna: Client) -> None:
    made = [str(group(last_seen=ago(minutes=n))) for n in range(120)]
    page = get(anna, LIST)
    assert listed(page) == made[:30]
    assert "120 failure groups" in page.text
    older = next(a["href"] for a in page.all("a", rel="next"))
    second = get(anna, LIST + str(older))
    assert listed(second) == made[30:60]
    newer = next(a["href"] for a in second.all("a", rel="prev"))
    assert listed(get(anna, LIST + str(newer))) == made[:30]


def test_groups_by_assignee(anna: Client) -> None:
    mine, hers, nobodys = (group(assignee=name) for name in ("anna", "zoe", ""))
    for value, found in (("anna", mine), ("zoe", hers), ("-", nobodys)):
        assert listed(get(anna, LIST, assignee=value)) == [str(found)]
    assert f"{LIST}?assignee=zoe" in [
        f"{LIST}{link}" for link in get(anna, LIST).links if "zoe" in link
    ]


def test_groups_by_job_type(anna: Client) -> None:
    pay, crash = group(), group("jobqueue.WorkerLost", frame=ADD)
    archived(FAIL, "failed", fingerprint=pay)
    archived(ADD, "succeeded")
    group("elsewhere")
    assert listed(get(anna, LIST, job_type=FAIL)) == [str(pay)]
    assert listed(get(anna, LIST, job_type=ADD)) == [str(crash)]


def test_the_states_and_filters_keep_the_order(anna: Client) -> None:
    group()
    page = get(anna, LIST, sort="day")
    (ignored,) = [one for one in page.links if "state=ignored" in one]
    assert "sort=day" in ignored


@pytest.mark.parametrize("order", ["hour", "day", "new", "types"])
def test_pages_of_every_order_show_each_group_once_and_lead_back(
    anna: Client, order: str
) -> None:
    keys = [group(first_seen=ago(minutes=n), last_seen=ago()) for n in range(120)]
    for number, key in enumerate(keys):
        hours(key, h0=(number // 3, 0))
    pages = [get(anna, LIST, sort=order)]
    while following := pages[-1].all("a", rel="next"):
        pages.append(get(anna, LIST + str(following[0]["href"])))
    assert [len(page.rows) for page in pages] == [30, 30, 30, 30]
    shown = [key for page in pages for key in page.rows]
    assert sorted(shown) == sorted(map(str, keys))
    if order in ("hour", "day"):
        ranks = [keys.index(UUID(key)) // 3 for key in shown]
        assert ranks == sorted(ranks, reverse=True)
    back = pages[1].all("a", rel="prev")[0]["href"]
    assert get(anna, LIST + str(back)).rows == pages[0].rows


def test_groups_by_when_they_were_seen(anna: Client) -> None:
    group(last_seen=datetime(2026, 3, 1, tzinfo=timezone.get_default_timezone()))
    fresh = group()
    today = {"last_seen__range__gte_0": f"{ago(hours=1):%Y-%m-%d}"}
    assert listed(get(anna, LIST, **today)) == [str(fresh)]
    page = get(anna, LIST, last_seen__range__gte_0="soon")
    assert listed(page) == []
    assert "is not a date" in page.text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("PayErr", True),
        ("shop.pay", True),
        ("card <n>", True),
        ("CARD", True),
        ("refused", True),
        ("%", False),
    ],
)
def test_groups_by_the_beginning_of_what_they_are_named_for(
    anna: Client, text: str, found: bool
) -> None:
    pay = str(group())
    assert listed(get(anna, LIST, q=text)) == ([pay] if found else [])


def test_a_group_by_its_fingerprint(anna: Client) -> None:
    group()
    pay = group()
    assert listed(get(anna, LIST, q=str(pay))) == [str(pay)]


# The page of a group.


def test_the_page_says_whom_it_meets(anna: Client) -> None:
    pay = group()
    over = archived(FAIL, "failed", fingerprint=pay, queue="mail")
    for number in range(38):
        failure(pay, over, release="2026.11.3", error_message=f"card {number % 7}")
    failure(pay, over, release="2026.11.3", job_type=ADD, worker="web-2:9")
    failure(pay, release="2026.11.2", worker="web-2:9")
    page = get(anna, page_of("failuregroup", pay))
    for text in (
        "Of all 40 failures that are kept.",
        f"Job type Failures Share {FAIL} 39 97.5 %",
        "Queue Failures Share mail 39 97.5 % unknown 1 2.5 %",
        "Host Failures Share web-1 38 95.0 % web-2 2 5.0 %",
        "95.0 % of them happened on web-1.",
        "97.5 % of them carry release 2026.11.3.",
    ):
        assert text in page.text
    messages = page.all("li", **{"class": "jq-message"})
    assert len(messages) == 5


def test_only_the_newest_failures_are_broken_down(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("store.reading.failure_stats", "admin.failures.failure_page"):
        monkeypatch.setattr(f"django_jobqueue.{name}.MOST_BROKEN_DOWN", 2)
    pay = group()
    failure(pay, release="old", finished_at=ago(days=1))
    failure(pay, release="new")
    failure(pay, release="new")
    text = get(anna, page_of("failuregroup", pay)).text
    assert "Of the newest 2 failures." in text
    assert "100 % of them carry release new." in text


def test_the_page_draws_a_day_a_week_and_a_month(anna: Client) -> None:
    pay = group()
    hours(pay, h0=(1, 0), h23=(2, 0), h24=(4, 1), h167=(8, 0), h168=(16, 0))
    hours(pay, h719=(32, 0), h720=(64, 0))
    assert labels(get(anna, page_of("failuregroup", pay))) == [
        "24 hours: 3 failed, 0 retried.",
        "7 days: 15 failed, 1 retried.",
        "30 days: 63 failed, 1 retried.",
    ]


def test_the_page_has_the_traceback_the_jobs_and_the_notes(
    anna: Client, worker: HandDriven
) -> None:
    made = jobs.fail.enqueue(message="no")
    worker.claim()
    worker.run()
    worker.finish()
    fingerprint = FailureGroup.objects.get().fingerprint
    operations.note(
        [fingerprint], "It is the gateway: password=hunter2secret", by="bert"
    )
    page = get(anna, page_of("failuregroup", fingerprint))
    assert "raise ValueError(message)" in page.text
    assert "your code" in page.text
    assert page_of("queuedjob", made.id) in page.links
    assert "bert It is the gateway" in page.text
    assert "hunter2secret" not in page.html
    worker.work()
    page = get(anna, page_of("failuregroup", fingerprint))
    assert page_of("archivedjob", made.id) in page.links


def test_a_group_without_failures_has_a_page(anna: Client) -> None:
    text = get(anna, page_of("failuregroup", group())).text
    assert "Latest failure" not in text
    assert "Where it occurs" not in text


def test_who_may_see_groups_only_is_shown_no_job(log_in: LogIn) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    failure(pay, queued(FAIL, attempts=1))
    client = log_in("view_failuregroup")
    for page in (get(client, LIST), get(client, page_of("failuregroup", pay))):
        assert not [
            link for link in page.links if "job/" in link and "find" not in link
        ]
        assert page.all("button", formmethod="post") == []


def test_queries_of_a_page_do_not_grow(anna: Client) -> None:
    def queries(fingerprint: UUID) -> int:
        get(anna, page_of("failuregroup", fingerprint))
        with CaptureQueriesContext(connection) as captured:
            get(anna, page_of("failuregroup", fingerprint))
        return len(captured)

    one, many = group(), group()
    for fingerprint, count in ((one, 1), (many, 30)):
        for number in range(count):
            archived(FAIL, "failed", fingerprint=fingerprint)
            failure(
                fingerprint,
                queued(FAIL, attempts=1),
                error_message=f"card {number}",
                release=f"r{number}",
            )
        hours(fingerprint, **{f"h{n}": (1, 1) for n in range(count)})
    assert queries(many) == queries(one) <= 20


def test_a_list_reads_no_data_and_no_traceback(anna: Client) -> None:
    pay = group()
    failure(pay, archived(FAIL, "failed", fingerprint=pay))
    with CaptureQueriesContext(connection) as captured:
        get(anna, LIST)
    statements = [query["sql"] for query in captured.captured_queries]
    for column in ("data", "traceback", "error_message", "notes"):
        assert not [text for text in statements if f'"{column}"' in text]
        assert not [text for text in statements if f".{column}" in text]


# Decisions.


def test_groups_are_resolved_together(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    one, two = group(), group(regressed_at=ago(hours=1))
    page = select(anna, "failuregroup", "resolve", one, two)
    assert "Resolve 2 failure groups?" in page.text
    assert FailureGroup.objects.filter(state="open").count() == 2
    page = confirm(anna, "failuregroup", "resolve", one, two, in_release="r8")
    assert "2 failure groups were resolved." in page.text
    for row in FailureGroup.objects.all():
        assert (row.state, row.resolved_in, row.changed_by) == (
            "resolved",
            "r8",
            "anna",
        )
    entries = {e.object_id: e.get_change_message() for e in LogEntry.objects.all()}
    assert entries == dict.fromkeys((str(one), str(two)), "Resolved in release r8.")
    assert [told["verb"] for told in operated] == ["resolve failures"]


def test_what_regressed_since_the_page_was_made_stays_open(anna: Client) -> None:
    pay = group()
    page = select(anna, "failuregroup", "resolve", pay)
    (seen,) = (box["value"] for box in page.all("input", name="seen"))
    FailureGroup.objects.update(regressed_at=timezone.now())
    page = confirm(anna, "failuregroup", "resolve", pay, seen=seen)
    assert "1 was skipped: it changed meanwhile." in page.text
    assert FailureGroup.objects.get().state == "open"
    assert LogEntry.objects.count() == 0


def test_a_group_is_ignored_for_a_while_and_reopened(anna: Client) -> None:
    pay = group()
    until = timezone.localtime() + HOUR
    said = {"until": f"{until:%Y-%m-%dT%H:%M}"}
    page = confirm(anna, "failuregroup", "ignore", pay, **said)
    assert "1 failure group is ignored now." in page.text
    row = FailureGroup.objects.get()
    assert (row.state, row.ignored_until) == (
        "ignored",
        until.replace(second=0, microsecond=0),
    )
    page = confirm(anna, "failuregroup", "reopen", pay)
    assert "1 failure group is open again." in page.text
    assert FailureGroup.objects.get().state == "open"


def test_a_group_is_assigned_and_noted(anna: Client) -> None:
    pay = group()
    page = get(anna, reverse("admin:jobqueue_failuregroup_assign"), keys=pay)
    assert page.all("option", value="anna")
    confirm(anna, "failuregroup", "assign", pay, assignee="on call")
    confirm(anna, "failuregroup", "note", pay, text="a <b>bold</b> guess")
    row = FailureGroup.objects.get()
    assert row.assignee == "on call"
    assert row.notes.endswith("anna\na <b>bold</b> guess")
    page = get(anna, page_of("failuregroup", pay))
    assert "a <b>bold</b> guess" in page.text
    history = [entry.get_change_message() for entry in LogEntry.objects.all()]
    assert sorted(history) == ["Added a note.", "Assigned to on call."]


@pytest.mark.parametrize(
    ("verb", "said", "problem"),
    [
        ("ignore", {"until": "2020-01-01T00:00"}, "This moment is in the past."),
        ("resolve", {"in_release": "x" * 101}, "at most 100 characters"),
        ("resolve", {"seen": "yesterday"}, "This is not a valid time."),
        ("resolve", {"seen": "2026-01-01T00:00"}, "This is not a valid time."),
        ("assign", {"assignee": "a\x00b"}, "Null characters are not allowed."),
        ("note", {"text": ""}, "This field is required."),
    ],
)
def test_a_decision_that_cannot_be_is_refused(
    anna: Client, verb: str, said: dict[str, str], problem: str
) -> None:
    pay = group()
    assert problem in confirm(anna, "failuregroup", verb, pay, **said).text
    assert FailureGroup.objects.get().changed_at is None


def test_the_page_offers_what_makes_sense(anna: Client) -> None:
    def offered(**columns: Any) -> set[str]:
        links = get(anna, page_of("failuregroup", group(**columns))).links
        verbs = ("resolve", "ignore", "reopen", "assign", "note")
        return {v for v in verbs if any(f"/{v}/?keys=" in link for link in links)}

    assert offered() == {"resolve", "ignore", "assign", "note"}
    assert offered(state="resolved") == {"ignore", "reopen", "assign", "note"}
    assert offered(state="ignored") == {"resolve", "reopen", "assign", "note"}


# All jobs of a group, or of some.


def test_all_jobs_of_selected_groups_are_one_operation(anna: Client) -> None:
    one, two, three = (group() for _ in range(3))
    for fingerprint in (one, two, three):
        archived(FAIL, "failed", fingerprint=fingerprint)
        failure(fingerprint, queued(FAIL, attempts=1))
    for name, of_what in (
        ("replay_jobs", "2 failure groups · status: failed"),
        ("prune_jobs", "2 failure groups"),
        ("cancel_jobs", "2 failure groups"),
    ):
        page = select(anna, "failuregroup", name, one, two)
        assert of_what in page.text
        draft = BulkOperation.objects.latest("created_at")
        assert (draft.state, draft.total) == ("draft", 2)
        assert name == f"{draft.kind}_jobs"
        terms = Selection.from_json(draft.selection).terms
        assert set(terms[0].value) == {one, two}
    assert ArchivedJob.objects.count() == 3
    page = select(anna, "failuregroup", "replay_jobs", three)
    assert f"failure group: {FailureGroup.objects.get(pk=three)} ·" in page.text


def test_the_menu_offers_what_the_user_may_do(log_in: LogIn) -> None:
    group()
    client = log_in(*DECIDES, "start_bulkoperation", "cancel_queuedjob")
    offered = {option.get("value") for option in get(client, LIST).all("option")}
    assert {"cancel_jobs", "resolve"} <= offered
    assert not {"replay_jobs", "prune_jobs"} & offered


OPERATIONS = {
    "replay-jobs": ("replay", Table.ARCHIVED, "replay_archivedjob"),
    "resolve-and-replay": ("replay", Table.ARCHIVED, "replay_archivedjob"),
    "cancel-jobs": ("cancel", Table.QUEUED, "cancel_queuedjob"),
    "prune-jobs": ("prune", Table.ARCHIVED, "prune_archivedjob"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_all_jobs_is_drafted_and_nothing_more(
    anna: Client, name: str
) -> None:
    kind, table, _ = OPERATIONS[name]
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    archived(FAIL, "failed", fingerprint=uuid4())
    failure(pay, queued(FAIL, attempts=1))
    page = post(anna, operation_url(name, pay), {})
    draft = BulkOperation.objects.get()
    terms = [Term("group", pay)]
    if kind == "replay":
        terms.append(Term("status", "failed"))
    assert Selection.from_json(draft.selection) == Selection(table, tuple(terms))
    assert (draft.kind, draft.state, draft.total) == (kind, "draft", 1)
    assert draft.created_by == "anna"
    assert "failure group" in page.text
    assert ArchivedJob.objects.count() == 2
    assert FailureGroup.objects.get().state == "open"
    assert LogEntry.objects.count() == 0


def start(client: Client) -> Page:
    """Press the button of the draft's page."""
    id = BulkOperation.objects.get().pk
    page = get(client, page_of("bulkoperation", id))
    (shown,) = (box["value"] for box in page.all("input", name="shown"))
    said = {"shown": shown, "expires": "same", "skip_replayed": "any"}
    address = page_of("bulkoperation", id).replace("/change/", "/start/")
    return post(client, address, said)


def test_resolve_and_replay_resolves_when_the_replay_starts(anna: Client) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    page = post(anna, operation_url("resolve-and-replay", pay), {})
    assert "When this starts, the failure group is resolved: " in page.text
    assert FailureGroup.objects.get().state == "open"
    start(anna)
    row = FailureGroup.objects.get()
    assert (row.state, row.changed_by) == ("resolved", "anna")
    entries = LogEntry.objects.filter(object_id=str(pay))
    assert [entry.get_change_message() for entry in entries] == ["Resolved."]


def test_a_group_that_is_seen_again_before_the_start_stays_open(anna: Client) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    post(anna, operation_url("resolve-and-replay", pay), {})
    FailureGroup.objects.update(regressed_at=timezone.now())
    page = start(anna)
    assert "was seen again meanwhile, and stays open" in page.text
    assert FailureGroup.objects.get().state == "open"
    assert BulkOperation.objects.get().state == "queued"


def test_discarding_the_draft_leaves_the_group_as_it_was(anna: Client) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    post(anna, operation_url("resolve-and-replay", pay), {})
    operations.bulk.stop(BulkOperation.objects.get().pk)
    assert FailureGroup.objects.get().state == "open"


def test_starting_such_a_draft_needs_the_right_to_resolve(log_in: LogIn) -> None:
    pay = group()
    archived(FAIL, "failed", fingerprint=pay)
    post(
        log_in(*DECIDES, *REPLAYS, name="a"),
        operation_url("resolve-and-replay", pay),
        {},
    )
    address = page_of("bulkoperation", BulkOperation.objects.get().pk)
    client = log_in(*VIEWS, *REPLAYS, name="b")
    assert client.post(address.replace("/change/", "/start/")).status_code == 403
    assert FailureGroup.objects.get().state == "open"


REPLAYS = ("view_bulkoperation", "start_bulkoperation", "replay_archivedjob")


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_needs_its_rights(log_in: LogIn, name: str) -> None:
    pay = group()
    right = OPERATIONS[name][2]
    client = log_in(*DECIDES, right, name="a")
    assert client.post(operation_url(name, pay)).status_code == 403
    client = log_in(*DECIDES, "start_bulkoperation", name="b")
    assert client.post(operation_url(name, pay)).status_code == 403
    client = log_in(right, "start_bulkoperation", name="c")
    assert client.post(operation_url(name, pay)).status_code == 403
    client = log_in(
        *DECIDES, right, "start_bulkoperation", "view_bulkoperation", name="d"
    )
    assert client.post(operation_url(name, pay)).status_code == 302
    assert BulkOperation.objects.get().created_by == "d"


def test_to_resolve_and_replay_needs_the_right_to_resolve(log_in: LogIn) -> None:
    pay = group()
    client = log_in(*VIEWS, "replay_archivedjob", "start_bulkoperation")
    assert client.post(operation_url("resolve-and-replay", pay)).status_code == 403
    page = get(client, page_of("failuregroup", pay))
    actions = [str(b["formaction"]) for b in page.all("button", formmethod="post")]
    assert actions == [operation_url("replay-jobs", pay)]


def test_what_regressed_unseen_is_not_resolved_and_replayed(anna: Client) -> None:
    pay = group()
    page = get(anna, page_of("failuregroup", pay))
    (seen,) = (box["value"] for box in page.all("input", name="seen"))
    FailureGroup.objects.update(regressed_at=timezone.now())
    post(anna, operation_url("resolve-and-replay", pay), {"seen": seen})
    assert FailureGroup.objects.get().state == "open"
    assert not BulkOperation.objects.exists()


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_no_link(anna: Client, name: str) -> None:
    assert anna.get(operation_url(name, group())).status_code == 405
    page = post(anna, operation_url(name, uuid4()), {})
    assert "It is gone." in page.text


def test_a_flood_is_seen_understood_replayed_resolved_and_regresses(
    anna: Client, worker: HandDriven
) -> None:
    """Through a real worker, from the list to the regression."""
    for number in range(30):
        jobs.fail.enqueue(message=f"card {number} is refused")
    worker.work()
    worker.worker.completer.write_counters()
    (fingerprint,) = listed(get(anna, LIST, state="open"))
    page = get(anna, page_of("failuregroup", fingerprint))
    assert "24 hours: 30 failed, 60 retried." in labels(page)

    post(anna, operation_url("resolve-and-replay", UUID(fingerprint)), {})
    assert listed(get(anna, LIST, state="resolved")) == []
    assert operations.bulk.start(BulkOperation.objects.get().pk, by="anna")
    assert listed(get(anna, LIST, state="resolved")) == [fingerprint]
    worker.work()
    assert listed(get(anna, LIST, state="regressed")) == [fingerprint]
    assert ArchivedJob.objects.filter(job_type=FAIL, status="failed").count() == 60
