"""The page of what everybody did."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import AuditEntry
from django_jobqueue.operations.audit_log import MOST_NAMES, MOST_OBJECTS, record
from django_jobqueue.store import audit
from django_jobqueue.store.connection import OwnConnection
from tests.admin.conftest import LogIn
from tests.admin.pages import confirm, get, list_of, page_of
from tests.admin.scene import ADD, Scene, archived, queued
from tests.admin.units import following, listing
from tests.commands.conftest import jobqueue

PAGE = "auditentry"


def entries() -> list[tuple[str, str, int, list[str]]]:
    """What is kept, oldest first: act, by whom, how many, about what."""
    rows = AuditEntry.objects.order_by("id")
    return [(row.verb, row.by, row.count, row.about) for row in rows]


def test_an_act_in_the_admin_a_command_and_code_are_all_there(anna: Client) -> None:
    first, second = queued(), queued()
    confirm(anna, "queuedjob", "cancel", first, second, reason="a mistake")
    jobqueue("pause", ADD, "--reason", "stock-taking")
    operations.resume([ADD], by="carl")
    operations.override(ADD, concurrency=3, by="carl")
    operations.override(ADD, concurrency=None, by="carl")
    acts = entries()
    assert acts[0][:3] == ("cancel", "anna", 2)
    assert sorted(acts[0][3]) == sorted([str(first), str(second)])
    assert (acts[1][0], acts[1][2:]) == ("pause", (1, [ADD]))
    assert acts[2] == ("resume", "carl", 1, [ADD])
    text = get(anna, list_of(PAGE)).text
    for word in ("cancel", "anna", "a mistake", "stock-taking", "carl", ADD):
        assert word in text
    assert "concurrency: – → 3" in text
    assert "concurrency: 3 → –" in text


def test_what_code_does_in_nobody_s_name_and_what_changes_nothing_is_not_kept(
    anna: Client,
) -> None:
    operations.cancel([queued()])
    operations.cancel([archived()], by="anna")
    assert entries() == []
    assert "0 audit entries" in get(anna, list_of(PAGE)).text


def test_an_act_that_is_rolled_back_was_none(transactional_db: None) -> None:
    with transaction.atomic():
        operations.pause([ADD], by="anna")
        transaction.set_rollback(True)
    assert entries() == []


def test_it_is_filtered_by_act_person_object_and_time(anna: Client) -> None:
    for days, verb, by in ((0, "pause", "anna"), (1, "resume", "carl")):
        record(verb, by, 1, {"job_types": [ADD]})
        at = timezone.now() - timedelta(days=days)
        AuditEntry.objects.filter(verb=verb).update(at=at)
    operations.run_now([queued()], by="bert")
    everything = {"pause", "resume", "run now"}
    query: dict[str, str]
    for query, verbs in (
        ({"verb": "pause"}, {"pause"}),
        ({"by": "carl"}, {"resume"}),
        ({"q": ADD}, {"pause", "resume"}),
        ({"q": "carl"}, {"resume"}),
        ({"q": "nothing of the sort"}, set()),
        ({"q": "\x00"}, everything),
        ({"verb": "pause", "by": "carl"}, set()),
        ({"at__range__gte_0": "2001-01-01"}, everything),
        ({"at__range__lte_0": "2001-01-01"}, set()),
        ({"at__range__lte_0": "soon"}, set()),
    ):
        rows = listing(anna, PAGE, **query).result_list
        assert {row.verb for row in rows} == verbs, query
    # The acts of yesterday are one click away.
    day = f"{timezone.now() - timedelta(days=1):%Y-%m-%d}"
    links = get(anna, list_of(PAGE)).links
    (link,) = [link for link in links if f"gte_0={day}" in link and "lte_0" in link]
    assert [row.verb for row in following(anna, PAGE, link).result_list] == ["resume"]


def test_what_an_act_was_about_is_a_link(anna: Client, scene: Scene) -> None:
    id = scene.queued["ready"]
    operations.run_now([scene.queued["later"]], by="anna")
    operations.pause([ADD], by="anna")
    links = [url for url in get(anna, list_of(PAGE)).links if "find/?to=" in url]
    leads_to = {anna.get(link)["Location"] for link in links}
    assert page_of("jobtype", ADD) in leads_to
    assert page_of("queuedjob", scene.queued["later"]) in leads_to
    assert page_of("queuedjob", id) not in leads_to


def test_only_who_may_see_it_does(log_in: LogIn) -> None:
    get(log_in("view_queuedjob"), list_of(PAGE), code=403)
    get(log_in("view_auditentry", name="carl"), list_of(PAGE))


def test_long_lists_and_texts_are_cut(db: None) -> None:
    names = [f"type{number}" for number in range(500)]
    about: dict[str, Any] = {"job_types": names, "others": names, "reason": "x" * 9_999}
    record("pause", "anna", 500, about)
    entry = AuditEntry.objects.get()
    assert entry.about == names[:MOST_OBJECTS]
    assert entry.details == {"others": names[:MOST_NAMES], "reason": "x" * 500}


def test_secrets_and_rows_of_plain_sql_harm_no_page(anna: Client) -> None:
    record("pause", "eve", 1, {"reason": "password=s3cr3t"})
    for value in (7, "text", [], {}, [{"a": 1}], {"a": None}):
        AuditEntry.objects.create(by="x", verb="y", about=value, details=value)
    assert "s3cr3t" not in get(anna, list_of(PAGE)).html


def test_old_entries_are_dropped_in_batches(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "BATCH", 2)
    now = timezone.now()
    for days in (1, 2, 40, 50, 60):
        AuditEntry.objects.create(
            by="anna", verb="pause", at=now - timedelta(days=days)
        )
    month = 30 * 86_400.0
    assert [audit.drop(own, month) for _ in range(3)] == [2, 1, 0]
    assert AuditEntry.objects.count() == 2


def test_the_history_of_an_object_leads_to_its_acts(
    anna: Client, log_in: LogIn
) -> None:
    operations.pause([ADD], by="bertha")
    job = archived()
    operations.reveal(job, by="bertha")
    for model, key in (("jobtype", ADD), ("archivedjob", job)):
        address = page_of(model, key).replace("/change/", "/history/")
        (link,) = [one for one in get(anna, address).links if "/auditentry/?q=" in one]
        rows = following(anna, PAGE, link.partition("?")[2]).result_list
        assert [row.by for row in rows] == ["bertha"]
        links = get(log_in(f"view_{model}", name=model), address).links
        assert not [one for one in links if "/auditentry/" in one]
