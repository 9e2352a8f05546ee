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
from tests.admin.scene import ADD, LEAK, SECRET, Scene
from tests.admin.test_job_page import set_data, view_of
from tests.admin.units import answer, errors_of, press

pytestmark = pytest.mark.django_db

KEEP = "tests.sample.keep"  # whose arguments may be anything
SAVED = "The data was saved."


def hidden(page: Page) -> dict[str, str]:
    """What the form of this page sends unseen."""
    return {
        str(box["name"]): box.get("value") or ""
        for box in page.all("input", type="hidden")
        if box.get("name") in ("mark", "compared")
    }


def asked(client: Client, address: str) -> Any:
    return answer(client, address).context_data["form"]


def written(client: Client, address: str) -> str:
    return str(asked(client, address)["new_data"].value())


def compare(client: Client, address: str, text: str, **said: Any) -> Any:
    """Ask what this text changes: the answer."""
    mark = asked(client, address)["mark"].value()
    return answer(client, address, {"mark": mark, "new_data": text, **said})


def confirmed(compared: Any, text: str, **said: Any) -> dict[str, Any]:
    """What the button of the page sends that shows the changes."""
    form = compared.context_data["form"]
    seen = {name: form[name].value() for name in ("mark", "compared")}
    return {**seen, "new_data": text, "confirmed": "1", **said}


def save(client: Client, address: str, text: str, **said: Any) -> str:
    compared = compare(client, address, text, **said)
    return press(client, address, **confirmed(compared, text, **said))


def refused(client: Client, address: str, text: str, **said: Any) -> str:
    return errors_of(compare(client, address, text, confirmed="1", **said))


def edit(id: UUID) -> str:
    return view_of("queuedjob", id, "edit_data")


def replay(id: UUID) -> str:
    """Where an archived job is replayed with other data."""
    return view_of("archivedjob", id, "replay_edited")


def data_of(id: UUID) -> Any:
    return QueuedJob.objects.get(pk=id).data


def test_data_are_edited_once_the_changes_were_seen(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    id = rows.queued(data={"a": 1, "b": 2})
    assert edit(id) in get(anna, page_of("queuedjob", id)).links
    page = get(anna, edit(id))
    assert json.loads(written(anna, edit(id))) == {"a": 1, "b": 2}
    assert not page.all("input", name="confirmed")
    page = post(anna, edit(id), {**hidden(page), "new_data": '{"a": 5}'})
    assert "a changed 1 5" in page.text
    assert "b removed 2 –" in page.text
    assert page.all("input", name="confirmed")
    assert data_of(id) == {"a": 1, "b": 2}
    sent = {**hidden(page), "new_data": '{"a": 5}', "confirmed": "1"}
    # Other data than those compared are compared again.
    other = answer(anna, edit(id), {**sent, "new_data": '{"a": 6}'})
    assert "6" in str(other.context_data["changes"])
    assert data_of(id) == {"a": 1, "b": 2}
    assert press(anna, edit(id), **sent) == SAVED
    assert data_of(id) == {"a": 5}
    (entry,) = LogEntry.objects.all()
    assert entry.get_change_message() == "Edited the data: a, b."
    assert [(told["verb"], told["by"]) for told in operated] == [("edit data", "anna")]


def test_what_does_not_fit_is_said_at_the_field(anna: Client) -> None:
    id = rows.queued(KEEP, data={"a": 1})
    for text, problem in (
        ('{"a": 1, "c": 2}', "has no parameter 'c'"),
        ("{}", "is missing 'a'"),
        ("[1]", "The data of a job is an object"),
        ("7", "The data of a job is an object"),
        ('{"a": 1', "This is not JSON: look at line 1, column 8."),
        ('{"a": NaN}', "JSON has no NaN."),
        ('{"a": 1, "a": 2}', "The key a is there twice."),
        ('{"a": "\\u0000"}', "NUL character"),
        ('{"a": %s}' % ("7" * 5_000), "A number has too many digits."),
        ('{"a": 1}', "Nothing is changed yet."),
        ('{"a": "•••• 1"}', "a: a locked value must stay whole"),
        (f'{{"a": {"[" * 200}1{"]" * 200}}}', "nested deeper than 100 levels"),
        ("[" * 100_000, "nested too deeply"),
    ):
        errors = refused(anna, edit(id), text)
        assert errors.startswith("new_data: "), text[:99]
        assert problem in errors
    mark = asked(anna, edit(id))["mark"].value()
    page = post(anna, edit(id), {"mark": mark, "new_data": "[1]"})
    assert "The data of a job is an object" in page.text
    assert data_of(id) == {"a": 1}


# Secrets.

NEW = "a password that no token contains"


def test_secrets_are_locked_and_stay_or_are_replaced(anna: Client) -> None:
    card, url = {"card": SECRET}, f"p://u:{SECRET}@h"
    data = {"token": SECRET, "list": [card], "n": 1, "url": url}
    id = rows.queued(LEAK, data=data)
    JobType.objects.filter(pk=LEAK).update(handler="")
    page = get(anna, edit(id))
    assert SECRET not in page.html
    locked = json.loads(written(anna, edit(id)))
    found = sorted([locked["token"], locked["list"][0]["card"], locked["url"]])
    assert found == ["•••• 1", "•••• 2", "•••• 3"]
    # The mark does not tell them: else a short secret could be guessed from it.
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT md5(data::text), encode(sha256(data::text::bytea), 'hex') "
            "FROM jobqueue_queuedjob"
        )
        assert hidden(page)["mark"] not in cursor.fetchone()

    id = rows.queued(KEEP, data={"a": "x"})
    set_data(id, json.dumps({"a": {"token": SECRET, "password": SECRET, "n": 1.10}}))
    new = json.loads(written(anna, edit(id)))
    new["a"] |= {"password": NEW, "n": 2}
    mark = asked(anna, edit(id))["mark"].value()
    page = post(anna, edit(id), {"mark": mark, "new_data": json.dumps(new)})
    assert SECRET not in page.html
    assert NEW not in page.html[: page.html.index("<textarea")]
    save(anna, edit(id), json.dumps(new))
    assert data_of(id) == {"a": {"token": SECRET, "password": NEW, "n": 2}}
    assert LogEntry.objects.get().get_change_message() == "Edited the data: a."
    # Dots that the job itself has stay.
    id = rows.queued(KEEP, data={"a": {"token": "••••", "n": 1}})
    assert save(anna, edit(id), written(anna, edit(id)).replace("1", "2")) == SAVED
    assert data_of(id) == {"a": {"token": "••••", "n": 2}}
    # Nobody moves a secret to where it would be shown.
    id = rows.queued("tests.sample.say", data={"word": {"token": SECRET}})
    for text in (
        '{"word": {"note": "•••• 1"}}',
        '{"word": {"token": "x •••• 1"}}',
        '{"word": {"token": "••••"}}',
        '{"word": "•••• 1"}',
        '{"word": {"token": ["•••• 1"]}}',
    ):
        errors = refused(anna, edit(id), text)
        assert "a locked value must stay whole" in errors, text
        assert SECRET not in errors
    assert data_of(id) == {"word": {"token": SECRET}}


def test_the_comparison_does_not_tell_which_guess_of_a_secret_is_right(
    anna: Client,
) -> None:
    """Wherever it is typed: elsewhere, within a text, as a number or a key, or in place
    of the secret itself."""
    data = {"pin": "4711", "note": "of 4711", "by": {"4711": 1}, "a": ["4711"]}
    JobType.objects.filter(pk=KEEP).update(sensitive=["pin"])
    id = rows.queued(KEEP, data={"a": data})
    text = written(anna, edit(id))
    assert "4711" not in text
    locked = json.loads(text)["a"]

    def told(guess: str) -> list[str]:
        found = []
        for said in (
            {"b": guess},
            {"b": f"x{guess}x"},
            {"b": int(guess)},
            {"b": {guess: 1}},
            {"pin": guess},
            {"note": f"of {guess}"},
            {"by": {guess: 1}},
            {"a": [guess]},
        ):
            page = compare(anna, edit(id), json.dumps({"a": {**locked, **said}}))
            lines = [str(tuple(one)) for one in page.context_data["changes"]]
            assert lines, said
            found += [line.replace(guess, "…") for line in lines]
        return found

    assert told("4711") == told("1234")
    assert data_of(id) == {"a": data}


def history(model: str, id: UUID) -> str:
    return reverse(f"admin:jobqueue_{model}_history", args=[quote(id)])


def test_no_history_tells_values_to_those_who_may_not_see_data(
    anna: Client, viewer: Client
) -> None:
    """Neither values nor the keys inside of them, which come from outside as well."""
    for before, after in (
        ({"a": "pear"}, {"a": "plum"}),
        ({"a": {"pear": 1}}, {"a": {"plum": 1}}),
        ({"a": ["pear", {"pear": 1}]}, {"a": ["plum", {"plum": 1}]}),
        ({"a": "pear"}, {"a": {"plum": {}}}),
        ({"a": 1, "b": "pear"}, {"a": "plum"}),
    ):
        job = rows.queued(KEEP, data=before)
        assert save(anna, edit(job), json.dumps(after)) == SAVED
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
    assert len(told) == 7
    assert not [text for text in told if "pear" in text or "plum" in text]


# Meanwhile.


def test_what_changed_since_it_was_compared_is_left_alone(anna: Client) -> None:
    id = rows.queued(data={"a": 1})
    sent = confirmed(compare(anna, edit(id), '{"a": 5}'), '{"a": 5}')
    QueuedJob.objects.update(data={"a": 1, "b": 9})
    told = press(anna, edit(id), **sent)
    assert told == "The data was edited meanwhile. This is the new version."
    QueuedJob.objects.update(status="running", started_at=timezone.now())
    told = press(anna, edit(id), **sent)
    assert "its data cannot be edited any more" in told
    assert data_of(id) == {"a": 1, "b": 9}
    assert not LogEntry.objects.exists()


def test_what_cannot_be_edited_says_so(anna: Client, scene: Scene) -> None:
    large = rows.queued(data={"a": "x" * 300_000})
    for address, why in (
        (edit(scene.archived["succeeded"]), "it is in the archive."),
        (edit(large), "too large"),
        (replay(scene.archived["gone"]), "its job type is gone"),
    ):
        assert why in anna.get(address, follow=True).content.decode()


def test_editing_and_replaying_need_all_their_rights(log_in: LogIn) -> None:
    job, old = rows.queued(data={"a": 1}), rows.archived(data={"a": 1})
    data = {"view_job_data", "edit_job_data"}
    for address, rights in (
        (edit(job), {*data, "view_queuedjob"}),
        (replay(old), {*data, "view_archivedjob", "replay_archivedjob"}),
    ):
        for missing in rights:
            client = log_in(*rights - {missing}, name=f"{address} {missing}"[-99:])
            assert client.get(address).status_code == 403, missing
            sent = {"new_data": "{}"}
            assert client.post(address, sent).status_code == 403, missing
        client = log_in(*rights, name=address)
        told = save(client, address, '{"a": 2}')
        assert told in (SAVED, "The job was replayed.")


# Replays with other data.


def test_a_job_is_replayed_with_other_data(
    anna: Client, operated: list[dict[str, Any]]
) -> None:
    old = rows.archived(ADD, "failed", data={"a": 1, "b": 2}, priority=3)
    assert replay(old) in get(anna, page_of("archivedjob", old)).links
    said = {"queue": "", "attempts": "1", "priority": "7", "reason": "OPS-12"}
    told = save(anna, replay(old), '{"a": 5, "b": 2}', expires="never", **said)
    assert told == "This is the new job."
    new = QueuedJob.objects.get()
    assert (new.data, new.replay_of, new.enqueued_by) == ({"a": 5, "b": 2}, old, "anna")
    assert (new.max_attempts, new.priority) == (1, 7)
    assert ArchivedJob.objects.get().data == {"a": 1, "b": 2}
    found = {e.object_id: e.get_change_message() for e in LogEntry.objects.all()}
    words = "Replayed. OPS-12 Edited the data: a."
    assert found == dict.fromkeys((str(old), str(new.pk)), words)
    assert [one["verb"] for one in operated] == ["replay"]


def test_secrets_of_the_old_job_come_along(anna: Client) -> None:
    old = rows.archived(LEAK, "failed", data={"token": SECRET})
    assert SECRET not in get(anna, replay(old)).html
    save(anna, replay(old), written(anna, replay(old)))
    assert QueuedJob.objects.get().data == {"token": SECRET}
    # A job without a handler here can be replayed.
    JobType.objects.create(name="elsewhere.ship", queue="default")
    old = rows.archived("elsewhere.ship", "failed", data={"x": 1})
    save(anna, replay(old), '{"y": [1, 2]}')
    assert QueuedJob.objects.get(replay_of=old).data == {"y": [1, 2]}
