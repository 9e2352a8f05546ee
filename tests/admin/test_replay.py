"""Replay in the admin: asked, confirmed, linked both ways, written down."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin import scene as rows
from tests.admin.pages import get, list_of, page_of, select, verb_of
from tests.admin.scene import ADD, FAIL, LEAK, Scene
from tests.admin.units import act, answer, joined, problems
from tests.store.meanwhile import together

MODEL = "archivedjob"


def replays() -> list[QueuedJob]:
    return list(QueuedJob.objects.filter(replay_of__isnull=False).order_by("id"))


def asked(client: Client, *keys: object) -> Any:
    """What the page that asks would show."""
    return answer(client, verb_of(MODEL, "replay"), keys=joined(keys)).context_data


def newest_in(context: Any) -> str:
    """What the page that asks knows of replays."""
    return str(context["form"]["newest"].value() or "")


def test_the_question_says_how_many_of_what(anna: Client, scene: Scene) -> None:
    page = select(anna, MODEL, "replay", *scene.archived.values())
    for text in (
        "Replay 7 jobs?",
        "1 cancelled, 1 expired, 4 failed, 1 succeeded.",
        "1 belongs to an at-most-once type",
        "1 cannot be replayed, because its job type is gone.",
        f"Paused, so that the new jobs will wait: {LEAK}.",
        "the same lifetime, from when it is due",
    ):
        assert text in page.text
    assert replays() == []


def test_a_job_is_replayed_from_its_page_and_back_to_it(
    anna: Client, scene: Scene
) -> None:
    there = page_of(MODEL, scene.archived["failed"])
    (link,) = [link for link in get(anna, there).links if "/replay/" in link]
    hidden = get(anna, link).all("input", type="hidden")
    said = {str(box["name"]): box.get("value") or "" for box in hidden}
    response = anna.post(verb_of(MODEL, "replay"), {**said, "confirmed": "1"})
    assert response.headers["Location"] == there
    assert len(replays()) == 1


def test_what_was_replayed_already_is_left_out_unless_it_is_wanted(
    anna: Client, scene: Scene
) -> None:
    ids = scene.archived["failed"], scene.archived["succeeded"]
    before = newest_in(asked(anna, ids[0]))
    act(anna, MODEL, "replay", ids[0], newest=before)
    # A second click replays nothing.
    told = act(anna, MODEL, "replay", ids[0], newest=before)
    assert told == "1 was skipped: it was replayed meanwhile."
    page = select(anna, MODEL, "replay", *ids)
    assert "1 was replayed before." in page.text
    (box,) = page.all("input", name="skip_replayed")
    assert "checked" in box
    known = newest_in(asked(anna, *ids))
    told = act(anna, MODEL, "replay", *ids, skip_replayed="on", newest=known)
    assert told == "1 job was replayed. 1 was skipped: already replayed."
    known = newest_in(asked(anna, ids[0]))
    assert "1 job was replayed." in act(anna, MODEL, "replay", ids[0], newest=known)
    assert [new.replay_of for new in replays()] == [ids[0], ids[1], ids[0]]
    assert "+1" in get(anna, list_of(MODEL)).text
    # What the page knew must be an id.
    wrong = problems(anna, MODEL, "replay", ids[0], newest="x")
    assert "Enter a valid UUID." in wrong


def test_two_operators_replay_a_job_once(transactional_db: None) -> None:
    """Both saw the question before either confirmed."""
    old = rows.archived(FAIL, "failed")
    user = get_user_model().objects.create_superuser("anna", "", "x")
    clients = [Client() for _ in range(3)]
    for client in clients:
        client.force_login(user)
    told = together([partial(act, one, MODEL, "replay", old) for one in clients])
    assert len(replays()) == 1
    replayed, meanwhile = "1 job was replayed.", "it was replayed meanwhile"
    assert [replayed in text for text in told].count(True) == 1
    assert [meanwhile in text for text in told].count(True) == 2


def test_an_expired_job_expires_as_the_operator_says(
    anna: Client, scene: Scene
) -> None:
    old = ArchivedJob.objects.get(pk=scene.archived["expired"])
    lived = timedelta(hours=2)
    ArchivedJob.objects.filter(pk=old.pk).update(created_at=old.expires_at - lived)
    assert asked(anna, old.pk)["form"]["expires"].value() == "same"
    made = {}
    for expires in ("same", "keep", "never"):
        QueuedJob.objects.filter(replay_of=old.pk).delete()
        act(anna, MODEL, "replay", old.pk, expires=expires)
        (made[expires],) = replays()
    assert made["same"].expires_at - made["same"].run_after == lived
    assert made["keep"].expires_at == old.expires_at
    assert made["never"].expires_at is None


def test_some_are_left_as_they_are(anna: Client, scene: Scene) -> None:
    once, gone, good, cancelled = (
        scene.archived[name] for name in ("once", "gone", "failed", "cancelled")
    )
    told = act(anna, MODEL, "replay", once, skip_at_most_once="on")
    assert told == "1 was skipped: of an at-most-once type."
    ArchivedJob.objects.filter(pk=cancelled).delete()  # pruned meanwhile
    left = "The selected rows no longer exist."
    assert act(anna, MODEL, "replay", cancelled) == left
    assert replays() == []
    act(anna, MODEL, "replay", once)
    told = act(anna, MODEL, "replay", gone, good)
    assert told.startswith("1 job was replayed. 1 was skipped: it changed")
    assert [new.replay_of for new in replays()] == [once, good]
    entries = LogEntry.objects.order_by("object_id")
    assert [entry.object_id for entry in entries] == sorted([str(once), str(good)])
    assert {entry.get_change_message() for entry in entries} == {"Replayed."}
    assert "anna Replayed." in get(anna, page_of(MODEL, good)).text
    history = page_of(MODEL, good).replace("/change/", "/history/")
    assert "Replayed." in get(anna, history).text


def test_a_replayed_job_is_as_is_said(anna: Client, scene: Scene) -> None:
    """What it keeps where nothing is said is in tests/operations."""
    old = rows.archived(ADD, "failed", queue="mail", priority=5, data={"a": 1})
    said = {
        "queue": "images",
        "run_after": "2031-01-02T03:04",
        "priority": "-5",
        "attempts": "1",
        "expires": "new",
        "expires_at": "2031-01-03T00:00",
        "reason": "<b>OPS-12</b>",
    }
    act(anna, MODEL, "replay", old, **said)
    (new,) = replays()
    assert (new.queue, new.priority, new.max_attempts) == ("images", -5, 1)
    assert (new.data, new.replay_of) == ({"a": 1}, old)
    assert new.run_after.isoformat() == "2031-01-02T03:04:00+00:00"
    assert new.expires_at is not None
    assert new.expires_at.isoformat() == "2031-01-03T00:00:00+00:00"
    entry = LogEntry.objects.latest("pk").get_change_message()
    assert entry == "Replayed. <b>OPS-12</b>"
    assert "&lt;b&gt;OPS-12" in get(anna, page_of(MODEL, old)).html


def test_a_choice_that_there_is_not_is_asked_again(anna: Client, scene: Scene) -> None:
    id = scene.archived["expired"]
    for name, value, problem in (
        ("expires", "x", "Select a valid choice"),
        ("expires", "new", "Say when."),
        ("queue", "x", "Select a valid choice"),
        ("priority", "101", "less than or equal to 100"),
        ("priority", "1.5", "Enter a whole number."),
    ):
        wrong = problems(anna, MODEL, "replay", id, **{name: value})
        assert problem in wrong, name
    moments = {"run_after": "2031-01-02T00:00", "expires_at": "2031-01-01T00:00"}
    early = problems(anna, MODEL, "replay", id, expires="new", **moments)
    assert "This is before the job would run." in early
    assert replays() == []
