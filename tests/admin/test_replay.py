"""Replay in the admin: asked, confirmed, linked both ways, written down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import (
    Page,
    confirm,
    get,
    list_of,
    page_of,
    post,
    select,
    verb_of,
)
from tests.admin.scene import ADD, FAIL, LEAK, Scene
from tests.sample.jobs import add, fail
from tests.store.meanwhile import together


def replays() -> list[QueuedJob]:
    """The queued jobs that repeat another."""
    return list(QueuedJob.objects.filter(replay_of__isnull=False).order_by("id"))


def newest_in(page: Page) -> str:
    """What the page that asks knows of replays."""
    (box,) = page.all("input", name="newest")
    return box.get("value") or ""


def test_a_failed_job_is_replayed_from_the_list_and_succeeds(
    transactional_db: None, make_worker: Callable[..., Any]
) -> None:
    """The whole way: fail, select, confirm, run again, look at both pages."""
    worker = make_worker()
    fail.enqueue("no")
    worker.work()
    old = ArchivedJob.objects.get()
    JobType.objects.filter(name=old.job_type_id).update(paused=False)
    ArchivedJob.objects.update(job_type_id=ADD, data={"a": 4})
    get_user_model().objects.create_superuser("anna", "", "x")
    client = Client()
    client.force_login(get_user_model().objects.get())

    asked = select(client, "archivedjob", "replay", old.pk)
    assert "Replay 1 job?" in asked.text
    (keys,) = [box["value"] for box in asked.all("input", name="keys")]
    done = confirm(client, "archivedjob", "replay", keys)
    assert "1 job was replayed." in done.text
    (new,) = replays()
    assert (new.replay_of, new.root_id, new.enqueued_by) == (old.pk, old.pk, "anna")

    worker.work()
    again = ArchivedJob.objects.get(pk=new.pk)
    assert (again.status, again.result) == ("succeeded", 4)
    assert ArchivedJob.objects.get(pk=old.pk).status == "failed"
    assert (
        page_of("archivedjob", new.pk)
        in get(client, page_of("archivedjob", old.pk)).links
    )
    assert (
        page_of("archivedjob", old.pk)
        in get(client, page_of("archivedjob", new.pk)).links
    )
    assert page_of("archivedjob", new.pk) in get(client, list_of("archivedjob")).links


def test_selecting_alone_changes_nothing(anna: Client, scene: Scene) -> None:
    select(anna, "archivedjob", "replay", *scene.archived.values())
    assert replays() == []


def test_the_question_says_how_many_of_what(anna: Client, scene: Scene) -> None:
    page = select(anna, "archivedjob", "replay", *scene.archived.values())
    for text in (
        "Replay 7 jobs?",
        "1 cancelled, 1 expired, 4 failed, 1 succeeded.",
        "1 belongs to an at-most-once type",
        "1 cannot be replayed, because its job type is gone.",
        f"Paused, so that the new jobs will wait: {LEAK}.",
        "the same lifetime, from when it is due",
    ):
        assert text in page.text


def test_all_that_match_are_selected_across_pages(log_in: LogIn) -> None:
    anna = log_in("view_archivedjob", "replay_archivedjob", name="anna")
    for _ in range(120):
        rows.archived(FAIL, "failed")
    rows.archived(FAIL, "succeeded")
    page = get(anna, list_of("archivedjob"), status="failed")
    assert len(page.rows) == 50
    data = {
        "action": "replay",
        "index": 0,
        "select_across": 1,
        "_selected_action": page.rows[:1],
    }
    asked = post(anna, f"{list_of('archivedjob')}?status=failed", data)
    assert "Replay 120 jobs?" in asked.text
    (keys,) = [box["value"] for box in asked.all("input", name="keys")]
    done = confirm(anna, "archivedjob", "replay", keys)
    assert "120 jobs were replayed." in done.text
    assert len(replays()) == 120


def test_more_than_a_thousand_need_a_bulk_operation(log_in: LogIn) -> None:
    anna = log_in("view_archivedjob", "replay_archivedjob", name="anna")
    ArchivedJob.objects.bulk_create(
        ArchivedJob(job_type_id=FAIL, status="failed") for _ in range(1_001)
    )
    data = {
        "action": "replay",
        "index": 0,
        "select_across": 1,
        "_selected_action": [str(ArchivedJob.objects.all()[0].pk)],
    }
    page = post(anna, list_of("archivedjob"), data)
    assert "At most 1,000 can be selected at once. Nothing was changed" in page.text
    assert "at most 1,000 at once" in page.text


def test_a_range_that_is_not_clear_selects_nothing(anna: Client, scene: Scene) -> None:
    data = {
        "action": "replay",
        "index": 0,
        "select_across": 1,
        "_selected_action": [str(scene.archived["failed"])],
    }
    page = post(anna, f"{list_of('archivedjob')}?finished_at__range__gte_0=soon", data)
    assert "Nothing was selected." in page.text


def test_a_job_is_replayed_from_its_page_and_back_to_it(
    anna: Client, scene: Scene
) -> None:
    page = get(anna, page_of("archivedjob", scene.archived["failed"]))
    (link,) = [link for link in page.links if verb_of("archivedjob", "replay") in link]
    asked = get(anna, link)
    assert "Replay 1 job?" in asked.text
    hidden = {
        str(box["name"]): box.get("value") or ""
        for box in asked.all("input", type="hidden")
    }
    response = anna.post(verb_of("archivedjob", "replay"), {**hidden, "confirmed": "1"})
    assert response.headers["Location"] == page_of(
        "archivedjob", scene.archived["failed"]
    )
    assert len(replays()) == 1


def test_what_was_replayed_already_is_left_out_unless_it_is_wanted(
    anna: Client, scene: Scene
) -> None:
    ids = scene.archived["failed"], scene.archived["succeeded"]
    confirm(anna, "archivedjob", "replay", ids[0])
    asked = select(anna, "archivedjob", "replay", *ids)
    assert "1 was replayed before." in asked.text
    (box,) = asked.all("input", name="skip_replayed")
    assert "checked" in box
    known = newest_in(asked)
    page = confirm(
        anna, "archivedjob", "replay", *ids, skip_replayed="on", newest=known
    )
    assert "1 job was replayed." in page.text
    assert "1 was skipped: replayed already." in page.text
    known = newest_in(select(anna, "archivedjob", "replay", ids[0]))
    page = confirm(anna, "archivedjob", "replay", ids[0], newest=known)
    assert "1 job was replayed." in page.text
    assert [new.replay_of for new in replays()] == [ids[0], ids[1], ids[0]]
    assert "+1" in get(anna, list_of("archivedjob")).text


def test_a_second_click_replays_nothing(anna: Client, scene: Scene) -> None:
    ids = scene.archived["failed"], scene.archived["succeeded"]
    known = newest_in(select(anna, "archivedjob", "replay", *ids))
    confirm(anna, "archivedjob", "replay", *ids, newest=known)
    page = confirm(anna, "archivedjob", "replay", *ids, newest=known)
    assert "2 were skipped: they were replayed meanwhile." in page.text
    assert {new.replay_of for new in replays()} == {*ids}
    assert len(replays()) == 2


def test_two_operators_replay_a_job_once(transactional_db: None) -> None:
    """Both saw the question before either confirmed."""
    old = rows.archived(FAIL, "failed")
    user = get_user_model().objects.create_superuser("anna", "", "x")
    clients = [Client(), Client(), Client(), Client()]
    for client in clients:
        client.force_login(user)
    pages = together(
        [partial(confirm, client, "archivedjob", "replay", old) for client in clients]
    )
    texts = [page.text for page in pages]
    assert len(replays()) == 1
    assert sum("1 job was replayed." in text for text in texts) == 1
    assert sum("replayed meanwhile" in text for text in texts) == 3


def test_what_the_page_knew_must_be_an_id(anna: Client, scene: Scene) -> None:
    id = scene.archived["failed"]
    page = confirm(anna, "archivedjob", "replay", id, newest="x")
    assert "Enter a valid UUID." in page.text
    assert replays() == []


def test_a_replay_of_a_replay_remembers_the_first(anna: Client, scene: Scene) -> None:
    first = scene.archived["failed"]
    second = rows.archived(FAIL, "failed", replay_of=first, root_id=first)
    confirm(anna, "archivedjob", "replay", second)
    (new,) = replays()
    assert (new.replay_of, new.root_id) == (second, first)


@pytest.mark.parametrize(
    ("expires", "is_kept"), [("same", False), ("keep", True), ("never", False)]
)
def test_an_expired_job_expires_as_the_operator_says(
    anna: Client, scene: Scene, expires: str, is_kept: bool
) -> None:
    old = ArchivedJob.objects.get(pk=scene.archived["expired"])
    ArchivedJob.objects.filter(pk=old.pk).update(
        created_at=old.expires_at - timedelta(hours=2)
    )
    confirm(anna, "archivedjob", "replay", old.pk, expires=expires)
    (new,) = replays()
    if expires == "never":
        assert new.expires_at is None
        return
    assert new.expires_at is not None
    assert (new.expires_at == old.expires_at) is is_kept
    if not is_kept:
        assert new.expires_at - new.run_after == timedelta(hours=2)


def test_the_same_time_to_live_is_chosen_before(anna: Client, scene: Scene) -> None:
    page = select(anna, "archivedjob", "replay", scene.archived["expired"])
    (chosen,) = [box for box in page.all("input", name="expires") if "checked" in box]
    assert chosen["value"] == "same"


def test_a_choice_that_there_is_not_is_asked_again(anna: Client, scene: Scene) -> None:
    page = confirm(
        anna, "archivedjob", "replay", scene.archived["expired"], expires="x"
    )
    assert "Select a valid choice" in page.text
    page = confirm(anna, "archivedjob", "replay", scene.archived["failed"], queue="x")
    assert "Select a valid choice" in page.text
    assert replays() == []


def test_jobs_of_at_most_once_types_are_left_out_unless_they_are_wanted(
    anna: Client, scene: Scene
) -> None:
    once = scene.archived["once"]
    page = confirm(anna, "archivedjob", "replay", once, skip_at_most_once="on")
    assert "1 was skipped: of an at-most-once type." in page.text
    assert replays() == []
    confirm(anna, "archivedjob", "replay", once)
    assert [new.replay_of for new in replays()] == [once]


def test_a_job_can_be_replayed_into_another_queue(anna: Client, scene: Scene) -> None:
    confirm(anna, "archivedjob", "replay", scene.archived["failed"], queue="images")
    assert [new.queue for new in replays()] == ["images"]


def test_a_job_whose_type_is_gone_is_left_as_it_is(anna: Client, scene: Scene) -> None:
    ids = scene.archived["gone"], scene.archived["failed"]
    page = confirm(anna, "archivedjob", "replay", *ids)
    assert "1 job was replayed." in page.text
    assert "1 was skipped: it changed" in page.text
    assert [new.replay_of for new in replays()] == [ids[1]]


def test_what_was_pruned_meanwhile_is_not_replayed(anna: Client, scene: Scene) -> None:
    gone = scene.archived["failed"]
    ArchivedJob.objects.filter(pk=gone).delete()
    page = confirm(anna, "archivedjob", "replay", gone)
    assert "Nothing of what was selected is here any more." in page.text


def test_a_replay_is_written_down_once_for_each_job(anna: Client, scene: Scene) -> None:
    ids = scene.archived["failed"], scene.archived["gone"], scene.archived["expired"]
    confirm(anna, "archivedjob", "replay", *ids, expires="keep")
    entries = LogEntry.objects.order_by("object_id")
    assert [entry.object_id for entry in entries] == sorted([str(ids[0]), str(ids[2])])
    assert {entry.get_change_message() for entry in entries} == {"Replayed."}
    page = get(anna, page_of("archivedjob", ids[0]))
    assert "anna Replayed." in page.text
    history = page_of("archivedjob", ids[0]).replace("/change/", "/history/")
    assert "Replayed." in get(anna, history).text


def test_a_replayed_job_keeps_its_data_and_its_own_limits(
    anna: Client, db: None
) -> None:
    old = rows.archived(
        ADD, "failed", data={"a": 1}, max_attempts=9, priority=5, queue="mail"
    )
    before = timezone.now()
    confirm(anna, "archivedjob", "replay", old)
    (new,) = replays()
    assert (new.data, new.max_attempts, new.priority) == ({"a": 1}, 9, 5)
    assert (new.queue, new.attempts, new.status) == ("mail", 0, "queued")
    assert before <= new.run_after <= timezone.now()
    assert add.name == ADD


def test_a_replay_can_wait_be_urgent_and_be_tried_once(anna: Client, db: None) -> None:
    old = rows.archived(FAIL, "failed", max_attempts=9)
    said = {
        "run_after": "2031-01-02T03:04",
        "priority": "-5",
        "attempts": "1",
        "expires": "new",
        "expires_at": "2031-01-03T00:00",
        "reason": "<b>OPS-12</b>",
    }
    confirm(anna, "archivedjob", "replay", old, **said)
    (new,) = replays()
    assert (new.priority, new.max_attempts) == (-5, 1)
    assert new.run_after.isoformat() == "2031-01-02T03:04:00+00:00"
    assert new.expires_at is not None
    assert new.expires_at.isoformat() == "2031-01-03T00:00:00+00:00"
    entry = LogEntry.objects.get().get_change_message()
    assert entry == "Replayed. <b>OPS-12</b>"
    assert "&lt;b&gt;OPS-12" in get(anna, page_of("archivedjob", old)).html


@pytest.mark.parametrize("priority", ["101", "-101", "x", "1.5"])
def test_a_priority_that_there_is_not_is_asked_again(
    anna: Client, db: None, priority: str
) -> None:
    old = rows.archived(FAIL, "failed")
    page = confirm(anna, "archivedjob", "replay", old, priority=priority)
    assert "errorlist" in page.html
    assert replays() == []
