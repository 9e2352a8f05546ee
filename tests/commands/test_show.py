"""``jobqueue show``: one job, with all that is known of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from django_jobqueue import operations
from django_jobqueue.management.jobqueue.show import Show
from django_jobqueue.models import ArchivedJob, Failure, QueuedJob, Report
from django_jobqueue.store.rows import Job
from django_jobqueue.text.redaction import MASK
from tests.commands.conftest import jobqueue, not_refused
from tests.sample import jobs
from tests.store.rows import archive
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


# How a job comes to be so; its status; its limit of attempts, and what is shown of it,
# though other limits hold by now.
STATES: dict[str, tuple[Make, str, int | None, str]] = {
    "waiting": (waiting, "queued", 7, "0 of 7"),
    "running": (running, "running", 7, "1 of 7"),
    "over": (over, "succeeded", None, "2"),  # success does not write down its limit
    "failed": (failed, "failed", 3, "1 of 3"),
    "cancelled": (cancelled, "cancelled", 7, "0 of 7"),
    "replayed": (replayed, "queued", 9, "0 of 9"),
}


def facts(text: str) -> dict[str, str]:
    """The first lines of what is shown, each a name and a value."""
    lines = text.partition("\n\n")[0].splitlines()
    return dict(re.split(r"\s{2,}", line, maxsplit=1) for line in lines)  # type: ignore[misc]


@pytest.mark.parametrize("state", STATES)
def test_a_job_is_shown_in_every_state_without_its_secrets(
    worker: HandDriven, state: str
) -> None:
    make, status, limit, attempts = STATES[state]
    job = make(worker)
    operations.override("tests.sample.tell", max_attempts=9)
    operations.override("tests.sample.fail_with", max_attempts=9)
    of_job = {"job_id": job.id}
    Failure.objects.filter(**of_job).update(
        error_message=f"no {SECRET}", traceback=f"…{SECRET}\n", reason=SECRET
    )
    Report.objects.filter(**of_job).update(note=f"with {SECRET}")

    text = jobqueue(f"show {job.id}")
    as_json = jobqueue(f"show job_{job.id} --format=json")

    assert text.err == as_json.err == ""
    shown, found = facts(text.out), as_json.json
    assert (shown["Job"], shown["Status"]) == (str(job.id), status)
    assert (found["id"], found["status"]) == (str(job.id), status)
    assert (found["max_attempts"], shown["Attempts"]) == (limit, attempts)
    assert set(found) <= set(re.findall(r"\w+", Show.json))
    assert len(found) == 41
    if job.job_type == "tests.sample.tell":  # which has it in its data
        for out in (text.out, as_json.out):
            assert (SECRET in out, MASK in out) == (False, True)


def test_what_was_said_and_what_came_of_it_is_shown(worker: HandDriven) -> None:
    id = over(worker).id
    text = jobqueue(f"show {id}").out
    for part in ("a, ü", "anna", "tests.sample.report", "ValueError: not yet"):
        assert part in text
    assert "Traceback of attempt 1" in text
    assert "info  line 1" in text

    found = jobqueue(f"show {id} --format json").json
    assert found["tags"] == ["a", "ü"]
    assert found["enqueued_by"] == "anna"
    assert found["followers"] == {"on_complete": ["tests.sample.report"]}
    (follower,) = found["followed_by"]
    assert jobqueue(f"show {follower} --format=json").json["follows"] == found["id"]
    assert found["attempts"] == 2
    assert found["progress"]["percent"] == 100
    assert found["progress"]["note"] == "done"
    (failure,) = found["failures"]
    assert (failure["attempt"], failure["end"]) == (1, "failed")
    assert failure["error_message"] == "not yet"
    assert failure["traceback"].endswith("ValueError: not yet\n")
    assert [line["text"] for line in found["lines"]][:2] == ["line 0", "line 1"]


def test_a_secret_of_the_data_is_masked_under_any_key(worker: HandDriven) -> None:
    id = over(worker).id
    ArchivedJob.objects.filter(id=id).update(
        result={"echo": SECRET, SECRET: [f"to {SECRET}"]}, metadata={"for": SECRET}
    )
    for form in ("text", "json"):
        assert SECRET not in jobqueue(f"show {id} --format {form}").out


def test_nothing_can_talk_to_the_terminal(worker: HandDriven) -> None:
    made = jobs.fail.enqueue("\x1b[31mred\n\x1b]0;title\x07")
    worker.work()
    text = jobqueue(f"show {made.id}").out
    assert "\x1b" not in text
    assert "\x07" not in text


def test_texts_of_several_lines_are_printed_as_lines() -> None:
    message = "the first line\nStatus  succeeded\nthe third line"
    id = archive(
        status="failed", error_message=message, backoff={"name": "x", "base": 3}
    )
    Report.objects.create(
        job_id=id, fence=1, number=1, lines=[[1_000, "info", message]]
    )
    out = jobqueue(f"show {id}").out
    assert "\\n" not in out
    lines = out.splitlines()
    assert lines.count("the third line") == 0
    assert sum(one.startswith("Status ") for one in lines) == 1
    inside = [one for one in lines if one.strip() == "Status  succeeded"]
    assert len(inside) == 2  # of the message and of the line: neither is a fact
    assert jobqueue(f"show {id} --format json").json["error_message"] == message


@pytest.mark.parametrize(("state", "limit"), [("cancelled", 7), ("over", None)])
def test_a_job_whose_type_is_gone_is_shown(
    worker: HandDriven, state: str, limit: int | None
) -> None:
    made = STATES[state][0](worker)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM jobqueue_jobtype WHERE name = 'tests.sample.tell'")
    found = jobqueue(f"show {made.id} --format json").json
    assert (found["handler"], found["max_attempts"]) == ("", limit)


def test_what_plain_sql_wrote_is_shown(worker: HandDriven) -> None:
    made = over(worker)
    lines = json.dumps([["x"], [1e300, "info", "y"], 5, [0, 1, 2]])
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobqueue_report SET lines = %s::jsonb", [lines])
    found = jobqueue(f"show {made.id} --format json").json
    assert {line["text"] for line in found["lines"]} == {"2"}


def test_a_waiting_job_is_shown_with_the_reasons(worker: HandDriven) -> None:
    made = jobs.add.enqueue(1)
    operations.pause("tests.sample.add", by="anna")
    text = facts(jobqueue(f"show {made.id}").out)
    as_json = jobqueue(f"show {made.id} --format json").json
    assert text["Why not running"] == "anna paused its job type"
    assert as_json["why_not_running"] == ["anna paused its job type"]
    operations.resume("tests.sample.add")
    worker.work()
    assert "Why not running" not in jobqueue(f"show {made.id}").out


@pytest.mark.parametrize("make", [waiting, over], ids=["queued", "archived"])
def test_a_job_is_found_by_a_shortened_id(worker: HandDriven, make: Make) -> None:
    id = make(worker).id
    jobs.add.enqueue(1)
    for text in (str(id)[:33], id.hex[:30].upper(), f"{id.hex[:8]}…{id.hex[-6:]}"):
        assert facts(jobqueue(f"show {text}").out)["Job"] == str(id)


def test_an_id_that_names_no_single_job_is_refused() -> None:
    first, second = (jobs.add.enqueue(1).id for _ in range(2))
    refused = {
        "7": "'7' is not a job id: give it, or its first 6 or more digits.",
        "xyz": "'xyz' is not a job id: give it, or its first 6 or more digits.",
        "fffffff": "There is no job whose id begins with 'fffffff'.",
        "019aa2f0-0000-7000-8000-000000000001": "There is no job ",
        first.hex[:6]: f"Several jobs have an id that begins with {first.hex[:6]!r}, "
        f"such as {first} and {second}.",
    }
    for command in ("show", "cancel", "replay"):
        assert not_refused(command, refused) == {}
    assert QueuedJob.objects.count() == 2
