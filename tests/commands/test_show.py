"""``jobqueue show``: one job, with all that is known of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.show import Show
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob, Report
from django_jobqueue.store.rows import Job
from django_jobqueue.text.redaction import MASK
from tests.commands.conftest import jobqueue
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "hunter2secret"
Make = Callable[[HandDriven], Job]


def made_many_things(worker: HandDriven) -> Job:
    options: Any = {
        "tags": ["a", "ü"],
        "metadata": {"trace": 7, "api_key": SECRET},
        "enqueued_by": "anna",
        "on_complete": jobs.report,
        "max_attempts": 7,
        "timeout": 90,
        "backoff": "immediate",
    }
    return jobs.tell.using(**options).enqueue(2, retry=True, secret=SECRET)


def waiting(worker: HandDriven) -> Job:
    return made_many_things(worker)


def running(worker: HandDriven) -> Job:
    made = made_many_things(worker)
    worker.claim()
    return made


def over(worker: HandDriven) -> Job:
    made = made_many_things(worker)
    worker.work()
    return made


def failed(worker: HandDriven) -> Job:
    made = jobs.fail_with.enqueue("lookup")
    worker.work()
    return made


def cancelled(worker: HandDriven) -> Job:
    made = waiting(worker)
    operations.cancel(made.id, reason="why not")
    return made


def replayed(worker: HandDriven) -> Job:
    return operations.replay(failed(worker).id)


STATES: dict[str, tuple[Make, str]] = {
    "waiting": (waiting, "queued"),
    "running": (running, "running"),
    "over": (over, "succeeded"),
    "failed": (failed, "failed"),
    "cancelled": (cancelled, "cancelled"),
    "replayed": (replayed, "queued"),
}


def facts(text: str) -> dict[str, str]:
    """The first lines of what is shown, each a name and a value."""
    lines = text.partition("\n\n")[0].splitlines()
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines)  # type: ignore[misc]


@pytest.mark.parametrize("state", STATES)
def test_a_job_is_shown_in_every_state(worker: HandDriven, state: str) -> None:
    make, status = STATES[state]
    id = str(make(worker).id)
    text, as_json = jobqueue("show", id), jobqueue("show", f"job_{id}", "--format=json")
    assert text.err == as_json.err == ""
    assert facts(text.out)["Job"] == id
    assert (as_json.json["id"], as_json.json["status"]) == (id, status)
    assert facts(text.out)["Status"] == status


@pytest.mark.parametrize("state", STATES)
def test_the_keys_are_the_same_in_every_state(worker: HandDriven, state: str) -> None:
    make, _ = STATES[state]
    found = jobqueue("show", str(make(worker).id), "--format", "json").json
    words = set(re.findall(r"\w+", Show.epilog))
    assert set(found) <= words
    assert len(found) == 41


def test_what_was_said_and_what_came_of_it_is_shown(worker: HandDriven) -> None:
    found = jobqueue("show", str(over(worker).id), "--format", "json").json
    assert found["tags"] == ["a", "ü"]
    assert found["enqueued_by"] == "anna"
    assert found["followers"] == {"on_complete": ["tests.sample.report"]}
    (follower,) = found["followed_by"]
    assert jobqueue("show", follower, "--format=json").json["follows"] == found["id"]
    assert found["attempts"] == 2
    assert found["progress"]["percent"] == 100
    assert found["progress"]["note"] == "done"
    (failure,) = found["failures"]
    assert (failure["attempt"], failure["end"]) == (1, "failed")
    assert failure["error_message"] == "not yet"
    assert failure["traceback"].endswith("ValueError: not yet\n")
    assert [line["text"] for line in found["lines"]][:2] == ["line 0", "line 1"]


def test_the_text_has_the_same(worker: HandDriven) -> None:
    text = jobqueue("show", str(over(worker).id)).out
    for part in (
        "a, ü",
        "anna",
        "tests.sample.report",
        "ValueError: not yet",
    ):
        assert part in text
    assert "Traceback of attempt 1" in text
    assert "info  line 1" in text


@pytest.mark.parametrize(
    ("state", "limit", "text"),
    [
        ("waiting", 7, "0 of 7"),
        ("running", 7, "1 of 7"),
        ("over", None, "2"),  # success does not write down its limit
        ("failed", 3, "1 of 3"),
        ("cancelled", 7, "0 of 7"),
    ],
)
def test_an_archived_job_keeps_the_limit_of_attempts_it_ended_with(
    worker: HandDriven, state: str, limit: int | None, text: str
) -> None:
    id = str(STATES[state][0](worker).id)
    operations.override("tests.sample.tell", max_attempts=9)
    operations.override("tests.sample.fail_with", max_attempts=9)
    assert jobqueue("show", id, "--format", "json").json["max_attempts"] == limit
    assert facts(jobqueue("show", id).out)["Attempts"] == text


@pytest.mark.parametrize("state", ["waiting", "running", "over", "cancelled"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_are_masked_wherever_they_are(
    worker: HandDriven, state: str, form: str
) -> None:
    make, _ = STATES[state]
    id = make(worker).id
    Failure.objects.filter(job_id=id).update(
        error_message=f"no {SECRET}", traceback=f"…{SECRET}\n", reason=SECRET
    )
    Report.objects.filter(job_id=id).update(note=f"with {SECRET}")
    shown = jobqueue("show", str(id), "--format", form).out
    assert SECRET not in shown
    assert MASK in shown


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_secret_of_the_data_is_masked_under_any_key(
    worker: HandDriven, form: str
) -> None:
    make, _ = STATES["over"]
    id = make(worker).id
    ArchivedJob.objects.filter(id=id).update(
        result={"echo": SECRET, SECRET: [f"to {SECRET}"]}, metadata={"for": SECRET}
    )
    assert SECRET not in jobqueue("show", str(id), "--format", form).out


def test_nothing_can_talk_to_the_terminal(worker: HandDriven) -> None:
    made = jobs.fail.enqueue("\x1b[31mred\n\x1b]0;title\x07")
    worker.work()
    text = jobqueue("show", str(made.id)).out
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize(("state", "limit"), [("cancelled", 7), ("over", None)])
def test_a_job_whose_type_is_gone_is_shown(
    worker: HandDriven, state: str, limit: int | None
) -> None:
    made = STATES[state][0](worker)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobqueue_jobtype WHERE name = 'tests.sample.tell'")
    found = jobqueue("show", str(made.id), "--format", "json").json
    assert (found["handler"], found["max_attempts"]) == ("", limit)


def test_what_plain_sql_wrote_is_shown(worker: HandDriven) -> None:
    made = over(worker)
    lines = json.dumps([["x"], [1e300, "info", "y"], 5, [0, 1, 2]])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobqueue_report SET lines = %s::jsonb", [lines])
    found = jobqueue("show", str(made.id), "--format", "json").json
    assert {line["text"] for line in found["lines"]} == {"2"}


def test_an_override_shows_in_the_limit() -> None:
    made = jobs.add.enqueue(1)
    operations.override("tests.sample.add", max_attempts=9)
    assert " of 9\n" in jobqueue("show", str(made.id)).out
    operations.override("tests.sample.add", max_attempts=-1)
    assert " of unlimited\n" in jobqueue("show", str(made.id)).out
    operations.override("tests.sample.add", max_attempts=None)


def test_replays_know_each_other(worker: HandDriven) -> None:
    made = replayed(worker)
    old = str(QueuedJob.objects.get().replay_of)
    assert str(made.id) in jobqueue("show", old).out
    assert old in jobqueue("show", str(made.id)).out


@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("019aa2f0-0000-7000-8000-000000000001", "There is no job "),
        ("7", "'7' is no job id: give it, or its first 6 or more digits."),
    ],
)
def test_what_is_no_job_is_refused(id: str, message: str) -> None:
    with pytest.raises(CommandError) as refused:
        jobqueue("show", id)
    assert str(refused.value).startswith(message)


def test_a_waiting_job_is_shown_with_the_reasons(worker: HandDriven) -> None:
    made = jobs.add.enqueue(1)
    operations.pause("tests.sample.add", by="anna")
    text = facts(jobqueue("show", str(made.id)).out)
    as_json = jobqueue("show", str(made.id), "--format", "json").json
    assert text["Why not running"] == "anna paused its job type"
    assert as_json["why_not_running"] == ["anna paused its job type"]
    operations.resume("tests.sample.add")
    worker.work()
    assert "Why not running" not in jobqueue("show", str(made.id)).out


@pytest.mark.parametrize("make", [waiting, over], ids=["queued", "archived"])
def test_a_job_is_found_by_a_shortened_id(worker: HandDriven, make: Make) -> None:
    id = make(worker).id
    jobs.add.enqueue(1)
    for text in (str(id)[:33], id.hex[:30].upper(), f"{id.hex[:8]}…{id.hex[-6:]}"):
        assert facts(jobqueue("show", text).out)["Job"] == str(id)


@pytest.mark.parametrize("arguments", [["show"], ["cancel"], ["replay"]])
def test_an_id_that_names_no_single_job_is_refused(
    worker: HandDriven, arguments: list[str]
) -> None:
    first, second = (jobs.add.enqueue(1).id for _ in range(2))
    refused = {
        "xyz": "'xyz' is no job id: give it, or its first 6 or more digits.",
        "fffffff": "There is no job whose id begins with 'fffffff'.",
        first.hex[:6]: f"Several jobs have an id that begins with {first.hex[:6]!r}, "
        f"such as {first} and {second}.",
    }
    for text, message in refused.items():
        with pytest.raises(CommandError) as error:
            jobqueue(*arguments, text)
        assert str(error.value) == message
    assert QueuedJob.objects.count() == 2
