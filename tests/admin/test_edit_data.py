"""Editing data: compared, confirmed, checked; secrets stay locked."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.conftest import LogIn
from tests.admin.pages import Page, get, page_of, post
from tests.admin.scene import ADD, LEAK, MINUTE, SECRET, Scene
from tests.admin.test_job_page import set_data, view_of

KEEP = "tests.sample.keep"  # whose arguments may be anything


def hidden(page: Page) -> dict[str, str]:
    """What the form of this page sends unseen."""
    return {
        str(box["name"]): box.get("value") or ""
        for box in page.all("input", type="hidden")
        if box.get("name") in ("mark", "compared")
    }


def written(page: Page) -> str:
    """The text in the editor."""
    start = page.html.index("<textarea")
    text = page.html[page.html.index(">", start) + 1 : page.html.index("</textarea>")]
    return Page(text).texts[0].lstrip("\r\n") if text.strip() else ""


def compare(client: Client, address: str, text: str, **said: Any) -> Page:
    """Ask what this text changes."""
    asked = get(client, address)
    return post(client, address, {**hidden(asked), "new_data": text, **said})


def save(client: Client, address: str, text: str, **said: Any) -> Page:
    """Compare, and confirm."""
    page = compare(client, address, text, **said)
    sent = {**hidden(page), "new_data": text, "confirmed": "1", **said}
    return post(client, address, sent)


def edit(id: UUID) -> str:
    """Where the data of a queued job are edited."""
    return view_of("queuedjob", id, "edit_data")


def data_of(id: UUID) -> Any:
    """The data that a queued job has now."""
    return QueuedJob.objects.get(pk=id).data


def test_data_are_edited_once_the_changes_were_seen(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    id = rows.queued(data={"a": 1, "b": 2})
    assert edit(id) in get(anna, page_of("queuedjob", id)).links
    asked = get(anna, edit(id))
    assert json.loads(written(asked)) == {"a": 1, "b": 2}
    assert not asked.all("input", name="confirmed")
    page = compare(anna, edit(id), '{"a": 5}')
    assert "a changed 1 5" in page.text
    assert "b removed 2 –" in page.text
    assert page.all("input", name="confirmed")
    assert data_of(id) == {"a": 1, "b": 2}
    page = save(anna, edit(id), '{"a": 5}')
    assert "The data were saved." in page.text
    assert data_of(id) == {"a": 5}
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == "Edited the data: a, b."
    assert [(told["verb"], told["by"]) for told in operated] == [("edit data", "anna")]


def test_other_data_than_those_compared_are_compared_anew(
    anna: Client, db: None
) -> None:
    id = rows.queued(data={"a": 1})
    page = compare(anna, edit(id), '{"a": 5}')
    sent = {**hidden(page), "new_data": '{"a": 6}', "confirmed": "1"}
    page = post(anna, edit(id), sent)
    assert "a changed 1 6" in page.text
    assert data_of(id) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "c": 2}', "has no parameter 'c'"),
        ("{}", "is missing 'a'"),
        ("[1]", "The data of a job are an object"),
        ("7", "The data of a job are an object"),
        ('{"a": 1', "This is not JSON: look at line 1, column 8."),
        ('{"a": NaN}', "JSON has no NaN."),
        ('{"a": 1, "a": 2}', "The key a is there twice."),
        ('{"a": "\\u0000"}', "NUL character"),
        ('{"a": %s}' % ("7" * 5_000), "A number has too many digits."),
        ('{"a": 1}', "Nothing is changed yet."),
        ('{"a": "•••• 1"}', "a: a locked value stays only where it was"),
        (f'{{"a": {"[" * 200}1{"]" * 200}}}', "nested deeper than 100 levels"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_does_not_fit_is_said_at_the_field(
    anna: Client, db: None, text: str, problem: str
) -> None:
    id = rows.queued(KEEP, data={"a": 1})
    page = save(anna, edit(id), text)
    assert problem in page.text
    assert page.all("ul", **{"class": "errorlist"}) or "errorlist" in page.html
    assert data_of(id) == {"a": 1}


def test_secrets_are_locked_and_keep_their_value(anna: Client, db: None) -> None:
    data = {
        "token": SECRET,
        "list": [{"card": SECRET}],
        "n": 1,
        "url": f"p://u:{SECRET}@h",
    }
    id = rows.queued(LEAK, data=data)
    JobType.objects.filter(pk=LEAK).update(handler="")
    asked = get(anna, view_of("queuedjob", id, "edit_data"))
    assert SECRET not in asked.html
    text = written(asked)
    locked = json.loads(text)
    assert sorted([locked["token"], locked["list"][0]["card"], locked["url"]]) == [
        "•••• 1",
        "•••• 2",
        "•••• 3",
    ]


NEW = "a password that no token contains"


def test_a_locked_value_stays_and_another_replaces_it(anna: Client, db: None) -> None:
    id = rows.queued(KEEP, data={"a": "x"})
    set_data(id, json.dumps({"a": {"token": SECRET, "password": SECRET, "n": 1.10}}))
    text = written(get(anna, edit(id)))
    new = json.loads(text)
    new["a"]["password"] = NEW
    new["a"]["n"] = 2
    page = compare(anna, edit(id), json.dumps(new))
    assert SECRET not in page.html
    assert NEW not in page.html[: page.html.index("<textarea")]
    page = save(anna, edit(id), json.dumps(new))
    assert data_of(id) == {"a": {"token": SECRET, "password": NEW, "n": 2}}
    told = LogEntry.objects.get().get_change_message()
    assert told == "Edited the data: a."


def history(model: str, id: UUID) -> str:
    """Where the history of a job is read."""
    return reverse(f"admin:jobqueue_{model}_history", args=[quote(id)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": "pear"}, {"a": "plum"}),
        ({"a": {"pear": 1}}, {"a": {"plum": 1}}),
        ({"a": ["pear", {"pear": 1}]}, {"a": ["plum", {"plum": 1}]}),
        ({"a": "pear"}, {"a": {"plum": {}}}),
        ({"a": 1, "b": "pear"}, {"a": "plum"}),
    ],
)
def test_no_history_tells_values_to_those_who_may_not_see_data(
    anna: Client, viewer: Client, before: Any, after: Any
) -> None:
    """Neither values nor the keys inside of them, which come from outside as well."""
    job = rows.queued(KEEP, data=before)
    assert "The data were saved." in save(anna, edit(job), json.dumps(after)).text
    old = rows.archived(KEEP, "failed", data=before)
    save(anna, replay(old), json.dumps(after))
    new = QueuedJob.objects.get(replay_of=old)
    for address in (
        history("queuedjob", job),
        history("archivedjob", old),
        history("queuedjob", new.pk),
    ):
        text = get(viewer, address).text
        assert "Edited the data: a" in text
        assert "pear" not in text
        assert "plum" not in text
    own = get(anna, reverse("admin:index")).html
    assert "pear" not in own
    assert "plum" not in own
    told = [entry.get_change_message() for entry in LogEntry.objects.all()]
    assert len(told) == 3
    assert not [text for text in told if "pear" in text or "plum" in text]


def test_a_secret_cannot_be_moved_to_where_it_would_be_shown(
    anna: Client, db: None
) -> None:
    id = rows.queued("tests.sample.say", data={"word": {"token": SECRET}})
    for text in (
        '{"word": {"note": "•••• 1"}}',
        '{"word": {"token": "x •••• 1"}}',
        '{"word": {"token": "••••"}}',
        '{"word": "•••• 1"}',
        '{"word": {"token": ["•••• 1"]}}',
    ):
        page = save(anna, edit(id), text)
        assert "a locked value stays only where it was" in page.text
        assert SECRET not in page.html
    assert data_of(id) == {"word": {"token": SECRET}}


def test_dots_that_the_job_itself_has_stay(anna: Client, db: None) -> None:
    id = rows.queued(KEEP, data={"a": {"token": "••••", "n": 1}})
    text = written(get(anna, edit(id))).replace("1", "2")
    assert "The data were saved." in save(anna, edit(id), text).text
    assert data_of(id) == {"a": {"token": "••••", "n": 2}}


def test_a_job_that_runs_meanwhile_is_left_alone(anna: Client, db: None) -> None:
    id = rows.queued(data={"a": 1})
    page = compare(anna, edit(id), '{"a": 5}')
    QueuedJob.objects.update(status="running", started_at=timezone.now())
    sent = {**hidden(page), "new_data": '{"a": 5}', "confirmed": "1"}
    page = post(anna, edit(id), sent)
    assert "its data cannot be edited any more" in page.text
    assert data_of(id) == {"a": 1}
    assert not LogEntry.objects.exists()


def test_data_that_were_edited_meanwhile_are_left_alone(anna: Client, db: None) -> None:
    id = rows.queued(data={"a": 1})
    page = compare(anna, edit(id), '{"a": 5}')
    QueuedJob.objects.update(data={"a": 1, "b": 9})
    sent = {**hidden(page), "new_data": '{"a": 5}', "confirmed": "1"}
    page = post(anna, edit(id), sent)
    assert "The data were edited meanwhile. Here are the new ones." in page.text
    assert data_of(id) == {"a": 1, "b": 9}


def test_a_job_that_ended_meanwhile_is_found_in_the_archive(
    anna: Client, scene: Scene
) -> None:
    response = anna.get(edit(scene.archived["succeeded"]), follow=True)
    assert "This job has finished; it is in the archive." in response.content.decode()


def test_the_mark_tells_nothing_of_the_data(anna: Client, db: None) -> None:
    """Else a short secret could be guessed from it."""
    id = rows.queued(LEAK, data={"token": SECRET})
    mark = hidden(get(anna, edit(id)))["mark"]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT md5(data::text), encode(sha256(data::text::bytea), 'hex') "
            "FROM jobqueue_queuedjob"
        )
        assert mark not in cursor.fetchone()


@pytest.mark.parametrize(
    "missing", ["view_queuedjob", "view_job_data", "edit_job_data"]
)
def test_editing_needs_three_rights(log_in: LogIn, db: None, missing: str) -> None:
    id = rows.queued(data={"a": 1})
    rights = {"view_queuedjob", "view_job_data", "edit_job_data"}
    client = log_in(*rights, name="all")
    assert client.get(edit(id)).status_code == 200
    client = log_in(*rights - {missing})
    assert client.get(edit(id)).status_code == 403
    assert client.post(edit(id), {"new_data": "{}"}).status_code == 403


def test_large_data_are_not_edited(anna: Client, db: None) -> None:
    id = rows.queued(data={"a": "x" * 300_000})
    response = anna.get(edit(id), follow=True)
    assert "too large" in response.content.decode()


def replay(id: UUID) -> str:
    """Where an archived job is replayed with other data."""
    return view_of("archivedjob", id, "replay_edited")


def test_a_job_is_replayed_with_other_data(
    anna: Client, db: None, operated: list[dict[str, Any]]
) -> None:
    old = rows.archived(ADD, "failed", data={"a": 1, "b": 2}, priority=3)
    assert replay(old) in get(anna, page_of("archivedjob", old)).links
    said = {
        "queue": "",
        "attempts": "1",
        "priority": "7",
        "expires": "never",
        "reason": "OPS-12",
    }
    page = save(anna, replay(old), '{"a": 5, "b": 2}', **said)
    assert "This is the new job." in page.text
    new = QueuedJob.objects.get()
    assert (new.data, new.replay_of, new.enqueued_by) == ({"a": 5, "b": 2}, old, "anna")
    assert (new.max_attempts, new.priority) == (1, 7)
    assert ArchivedJob.objects.get().data == {"a": 1, "b": 2}
    told = {
        entry.object_id: entry.get_change_message() for entry in LogEntry.objects.all()
    }
    assert told == dict.fromkeys(
        (str(old), str(new.pk)), "Replayed. OPS-12 Edited the data: a."
    )
    assert [one["verb"] for one in operated] == ["replay"]


def test_secrets_of_the_old_job_come_along(anna: Client, db: None) -> None:
    old = rows.archived(LEAK, "failed", data={"token": SECRET})
    page = save(anna, replay(old), written(get(anna, replay(old))))
    assert SECRET not in page.html
    assert QueuedJob.objects.get().data == {"token": SECRET}


def test_an_expired_job_gets_a_new_time_to_live(anna: Client, db: None) -> None:
    now = timezone.now()
    old = rows.archived(
        data={"a": 1},
        status="expired",
        created_at=now - 120 * MINUTE,
        expires_at=now - 60 * MINUTE,
    )
    asked = get(anna, replay(old))
    (chosen,) = [box for box in asked.all("input", name="expires") if "checked" in box]
    assert chosen["value"] == "same"
    save(anna, replay(old), '{"a": 2}', expires="same")
    new = QueuedJob.objects.get()
    assert new.expires_at is not None
    assert new.expires_at - new.run_after == 60 * MINUTE


def test_a_new_moment_of_expiry_must_be_given_and_later(anna: Client, db: None) -> None:
    old = rows.archived(data={"a": 1})
    page = save(anna, replay(old), '{"a": 2}', expires="new")
    assert "Say when." in page.text
    moments = {"run_after": "2031-01-02T00:00", "expires_at": "2031-01-01T00:00"}
    page = save(anna, replay(old), '{"a": 2}', expires="new", **moments)
    assert "This is before the job would run." in page.text
    assert not QueuedJob.objects.exists()
    moments["expires_at"] = "2031-01-03T00:00"
    save(anna, replay(old), '{"a": 2}', expires="new", **moments)
    new = QueuedJob.objects.get()
    assert new.expires_at is not None
    assert (new.run_after.isoformat(), new.expires_at.isoformat()) == (
        "2031-01-02T00:00:00+00:00",
        "2031-01-03T00:00:00+00:00",
    )


def test_a_job_whose_type_is_gone_is_refused_at_once(
    anna: Client, scene: Scene
) -> None:
    response = anna.get(replay(scene.archived["gone"]), follow=True)
    assert "its job type is gone" in response.content.decode()


def test_a_job_without_a_handler_here_can_be_replayed(anna: Client, db: None) -> None:
    JobType.objects.create(name="elsewhere.ship", queue="default")
    old = rows.archived("elsewhere.ship", "failed", data={"x": 1})
    save(anna, replay(old), '{"y": [1, 2]}')
    assert QueuedJob.objects.get().data == {"y": [1, 2]}


@pytest.mark.parametrize(
    "missing",
    ["view_archivedjob", "view_job_data", "edit_job_data", "replay_archivedjob"],
)
def test_replaying_with_other_data_needs_four_rights(
    log_in: LogIn, db: None, missing: str
) -> None:
    old = rows.archived(data={"a": 1})
    rights = {
        "view_archivedjob",
        "view_job_data",
        "edit_job_data",
        "replay_archivedjob",
    }
    client = log_in(*rights - {missing})
    assert client.get(replay(old)).status_code == 403
    assert client.post(replay(old), {"new_data": "{}"}).status_code == 403
    client = log_in(*rights, name="all")
    page = save(client, replay(old), '{"a": 2}')
    assert "The job was replayed." in page.text
