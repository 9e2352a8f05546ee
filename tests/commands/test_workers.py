"""``jobqueue workers``: a list, and what workers are asked."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue.management.jobqueue import workers
from django_jobqueue.management.jobqueue.workers import Workers
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.verbs.workers import OF_WORKERS
from tests.admin import scene
from tests.commands.conftest import jobqueue, not_refused, refusal
from tests.sample import jobs
from tests.stats.rows import worker

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("requests_commit")]


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def asked() -> dict[str, str]:
    return dict(Worker.objects.exclude(desired="").values_list("name", "desired"))


def test_workers_are_listed_with_what_they_are_asked() -> None:
    assert jobqueue("workers").out == "No worker is alive.\n"
    assert jobqueue("workers list --format json").json == []
    one = worker("web-1:1", release="r1", queues=["mail", "sms"], desired="drain")
    worker("web-2:2", running=3, threads=4, async_slots=100)
    worker("web-3:3", state="stopped")
    worker("node-1", remote=True, async_slots=4)
    heading, *lines = jobqueue("workers").out.splitlines()
    heads = "Id Worker State Asked to Running Slots Memory Age Release Queues"
    assert heading.split() == heads.split()
    (drained,) = (line for line in lines if "web-1:1" in line)
    assert drained.split()[:4] == [str(one.pk), "web-1:1", "running", "drain"]
    assert re.split(r"  +", drained)[-2:] == ["r1", "mail, sms"]
    assert ["(remote)" in line for line in lines if "node-1" in line] == [True]
    assert sum("web-2:2" in line for line in lines) == 1
    assert len(lines) == 3
    found = {told["name"]: told for told in jobqueue("workers --format json").json}
    assert all(key in Workers.json for key in found["web-2:2"])
    assert (found["web-2:2"]["queues"], found["web-1:1"]["asked_to"]) == (None, "drain")


def test_endpoints_are_listed_with_what_was_handed_over_to_them() -> None:
    jobs.add.enqueue(1)
    endpoint = worker("shipping", state="endpoint")
    began = timezone.now() - timedelta(minutes=5)
    QueuedJob.objects.update(
        status="running", worker_id=endpoint.pk, started_at=began, attempts=1
    )
    worker("web-1:1")
    _, _, _, _, line = jobqueue("workers").out.splitlines()
    assert re.split(r"  +", line) == [
        *("shipping", "not in ENDPOINTS here", "1", "5 m"),
        *["-"] * 5,
    ]
    other, one = jobqueue("workers --format json").json
    assert (one["id"], one["state"]) == (endpoint.pk, "endpoint")
    assert (one["running"], other["endpoint"]) == (1, None)
    assert one["endpoint"]["last"] is one["endpoint"]["address"] is None
    assert 299 < one["age"] < 600
    assert len(jobqueue("workers list web-1:1").out.splitlines()) == 2
    assert "no living worker 'shipping'" in refusal("workers drain shipping")


def test_the_answers_of_endpoints_are_listed(settings: Any) -> None:
    entry = {"url": "https://shipping.internal:8443/hooks", "secrets": [SECRET]}
    entry["auth"] = ("jobs", "s3cret")
    endpoints = {"shipping": entry, "mail": entry}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": endpoints}
    problem = "ConnectError: \x1b[31mno\nroute"
    scene.endpoint("shipping", 204, failed=2, answered=1_340, problem=problem)
    said = jobqueue("workers").out
    mail, shipping = said.splitlines()[-2:]
    assert mail.split() == ["mail", "shipping.internal:8443", "0", *["-"] * 6]
    assert re.split(r"  +", shipping) == [
        *("shipping", "shipping.internal:8443", "0", "-", "204", "250 ms", "2 m"),
        "2 of 1,340",
        "connection refused, 3 m ago, seen by web-1:7: "
        "ConnectError: \\x1b[31mno\\nroute",
    ]
    assert not [secret for secret in (SECRET, "s3cret", "hooks") if secret in said]
    told = jobqueue("workers --format json")
    assert not [secret for secret in (SECRET, "s3cret", "hooks") if secret in told.out]
    new, one = (each["endpoint"] for each in told.json)
    assert (new["last"], new["address"]) == (None, "shipping.internal:8443")
    assert (one["minutes"], one["answered"], one["failed"]) == (15, 1_340, 2)
    assert (one["last"]["class"], one["last"]["status"]) == ("2xx", 204)
    failure = one["last_failure"]
    assert (failure["class"], failure["status"]) == ("refused", None)
    assert failure["problem"] == problem
    keys = [*one, *failure]
    assert all(key in Workers.json for key in keys)


def test_workers_are_asked_by_name_or_id_or_chosen_by_flags() -> None:
    every = {
        "a:1": worker("a:1", host="a", release="r1"),
        "a:2": worker("a:2", host="a", release="r2"),
        "b:3": worker("b:3", host="b", release="r2"),
    }
    worker("a:4", host="a", release="r1", state="lost")
    for flags, names in (
        (f"a:1 {every['b:3'].pk} a:1", {"a:1", "b:3"}),
        ("--all", {*every}),
        ("--host a", {"a:1", "a:2"}),
        ("--release r1", {"a:1"}),
        ("--host a --release r2", {"a:2"}),
    ):
        for verb in ("drain", "resume", "stop", "restart"):
            Worker.objects.update(desired="")
            were = "worker was" if len(names) == 1 else "workers were"
            said = jobqueue(f"workers {verb} {flags}")
            assert said.out == f"{len(names)} {were} asked to {verb}.\n"
            assert asked() == dict.fromkeys(names, verb)
    found = jobqueue("workers --host a drain --format json").json
    assert [(one["name"], one["asked_to"]) for one in found] == [
        ("a:1", "drain"),
        ("a:2", "drain"),
    ]


def test_what_makes_no_sense_is_refused_and_asks_nobody() -> None:
    worker("a:1", host="a")
    worker("gone:1", state="stopped")
    reasons = {
        "drian a:1": "workers has no verb 'drian'. Did you mean 'drain'? Its ",
        "drain": "Name workers by id or name, or choose them by --host, --release ",
        "drain a:1 --all": "Name workers or choose them by --host, --releas",
        "drain a:11": "There is no living worker 'a:11'. Did you mean 'a:1'?",
        "drain a:1 b:9": "There is no living worker 'b:9'.",
        "drain gone:1": "There is no living worker 'gone:1'.",
        "stop --host c": "No living worker has --host c.",
        "drain a:1 --wait 3s": "--wait goes with stacks alone.",
        "stacks a:1 --wait x": "--wait: 'x' is not a duration. Write 30s",
    }
    assert not_refused("workers", reasons) == {}
    assert asked() == {}


def test_a_worker_that_ends_meanwhile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = worker("a:1"), worker("a:2")
    ask = OF_WORKERS["drain"]

    def ask_when_one_is_gone(*arguments: Any, **kwargs: Any) -> list[int]:
        Worker.objects.filter(pk=one.pk).update(state="stopped")
        return list(ask.function(*arguments, **kwargs))

    verb = ask._replace(function=ask_when_one_is_gone)
    monkeypatch.setitem(OF_WORKERS, "drain", verb)
    assert refusal("workers drain --all") == f"Of these, no longer alive: {one.pk}."
    assert asked() == {two.name: "drain"}


def test_a_worker_that_does_not_answer_is_waited_for_no_longer_than_is_said() -> None:
    one = worker("a:1")
    said = jobqueue("workers stacks a:1 --wait 0")
    assert "Worker a:1\nIt did not answer in time." in said.out
    found = jobqueue("workers stacks a:1 --wait 0 --format json").json
    assert found == [
        {"id": one.pk, "name": "a:1", "at": None, "stacks": [], "left_out": 0}
    ]


def test_the_answer_of_now_is_shown_and_not_an_older_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = worker(
        "a:1", stack_dump={"stack_request": 5, "at": "2020-01-01", "stacks": []}
    )

    def answer(seconds: float) -> None:
        row = Worker.objects.get(pk=one.pk)
        stacks = [
            {"job_id": "j", "job_type": "t", "seconds": 2, "stack": "  in handler\n"},
            {"thread": "dispatcher", "stack": "  in wait\x1b\n"},
        ]
        row.stack_dump = {
            "stack_request": row.request["stack_request"],
            "at": "2026-01-01T00:00:00+00:00",
            "stacks": stacks,
            "left_out": 1,
        }
        row.save()

    monkeypatch.setattr(workers, "sleep", answer)
    assert jobqueue("workers stacks a:1").out.splitlines() == [
        "",
        "Worker a:1",
        "Job j (t), for 2.0 s:",
        "  in handler",
        "",
        "Thread dispatcher:",
        "  in wait\\x1b",
        "",
        "1 more had no room.",
    ]
