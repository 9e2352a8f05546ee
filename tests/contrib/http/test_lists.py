"""Lists over HTTP: by key, with signed cursors, and of what the caller may see."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client, override_settings
from django.utils import timezone

from django_jobqueue.contrib.http import list_routes
from django_jobqueue.models import ArchivedJob, QueuedJob, Worker
from django_jobqueue.store.reading import job_pages
from tests.admin import scene
from tests.commands.conftest import jobqueue
from tests.contrib.http.conftest import Program, problem
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db


def walk(client: Program, path: str) -> list[str]:
    """The ids of all pages of two."""
    ids: list[str] = []
    cursor = ""
    while True:
        mark = "&" if "?" in path else "?"
        page = client.send("GET", f"{path}{mark}limit=2{cursor}")
        assert page.status_code == 200, page.content
        ids += [job["id"] for job in page.json()["jobs"]]
        if page.json()["cursor"] is None:
            return ids
        cursor = f"&cursor={page.json()['cursor']}"


def test_each_job_is_on_one_page_the_newest_first(
    billing: Program, worker: HandDriven
) -> None:
    queued = [jobs.add.enqueue(a=n).id for n in range(5)]
    assert walk(billing, "/queued-jobs") == [f"job_{id}" for id in reversed(queued)]
    worker.work()
    newest = ArchivedJob.objects.order_by("-finished_at", "-id")
    ids = [f"job_{job.pk}" for job in newest]
    assert len(ids) == 5
    assert walk(billing, "/archived-jobs") == ids
    assert walk(billing, "/queued-jobs") == []


def test_a_page_of_large_data_ends_sooner_and_another_one_follows(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_routes, "LONGEST_SHOWN", -1.0)
    ids = [f"job_{jobs.add.enqueue(a=n).id}" for n in range(3)]
    first = billing.send("GET", "/queued-jobs").json()
    assert [job["id"] for job in first["jobs"]] == ids[2:]
    assert walk(billing, "/queued-jobs") == ids[::-1]


def test_filters_are_those_of_the_admin_s_search(
    billing: Program, worker: HandDriven
) -> None:
    jobs.add.enqueue(a=1)
    jobs.keep.using(tags=["x"]).enqueue(a={"deep": 7})
    one = QueuedJob.objects.get(job_type="tests.sample.keep").pk
    for query, count in (
        ("", 2),
        ("?name=tests.sample.keep", 1),
        ("?status=queued", 2),
        ("?status=in-progress", 0),
        (f"?where={quote('data.a.deep:7 tag:x')}", 1),
        (f"?where={quote('queue:default type:tests.sample.add')}", 1),
        (f"?where=job_{one}", 1),
        ("?name=nothing", 0),
    ):
        assert len(walk(billing, f"/queued-jobs{query}")) == count, query
    worker.work()
    for query, count in (
        ("?status=succeeded&name=tests.sample.add", 1),
        ("?status=failed", 0),
        (f"?where={quote('finished:<-2h ran:<1h')}", 0),
    ):
        assert len(walk(billing, f"/archived-jobs{query}")) == count, query


def test_wrong_parameters_and_foreign_cursors_are_problems(billing: Program) -> None:
    for _ in range(3):
        jobs.add.enqueue(a=1)
    cursor = billing.send("GET", "/queued-jobs?limit=1").json()["cursor"]
    for query in (
        *("limit=0", "limit=-1", "limit=101", "limit=x", f"limit={'9' * 40}"),
        *("status=running", "status=", "staus=queued", "where=nothing:x"),
        *("where=%22", "where=%00", f"where={'x' * 1_001}", "where=019aa2f0"),
        *("where=priority:" + "9" * 40, "name=%00", "where=created:>9999999d"),
        *("where=data.a:" + quote("'; DROP TABLE x; --") + ":%22",),
    ):
        problem(billing.send("GET", f"/queued-jobs?{query}"), 400, "invalid_parameter")
    for query in (
        f"cursor={cursor}x",
        f"cursor={cursor}&where=tag:x",
        "cursor=x",
        "cursor=%00",
        "cursor=1:2:3",
    ):
        problem(billing.send("GET", f"/queued-jobs?{query}"), 400, "invalid_cursor")
    foreign = billing.send("GET", f"/archived-jobs?cursor={cursor}")
    problem(foreign, 400, "invalid_cursor")
    with override_settings(SECRET_KEY="another"):
        sent = billing.send("GET", f"/queued-jobs?cursor={cursor}")
        problem(sent, 400, "invalid_cursor")


def test_a_list_that_takes_too_long_says_so(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "in_time", lambda *args: None)
    problem(billing.send("GET", "/queued-jobs"), 503, "too_slow")


def test_a_caller_sees_only_jobs_and_types_that_a_pattern_lets_through(
    program: Callable[..., Program],
) -> None:
    for n in range(6):
        jobs.keep.enqueue(a=n)
        jobs.add.enqueue(a=n)
        jobs.add.using(queue="mail").enqueue(a=n)
    adds = program("read", job_types=["tests.sample.add"])
    assert len(walk(adds, "/queued-jobs")) == 12
    problem(adds.send("GET", "/queued-jobs?name=tests.sample.keep"), 403, "forbidden")
    mail = program("read", queues=["mail"])
    shown = mail.send("GET", "/queued-jobs").json()["jobs"]
    assert len(shown) == 6
    assert all("data" not in job for job in shown)
    types = adds.send("GET", "/jobs").json()["job_types"]
    assert [one["name"] for one in types] == ["tests.sample.add"]
    for path in ("/status", "/queues", "/workers", "/failures"):
        problem(adds.send("GET", path), 403, "forbidden")


def test_what_waits_runs_and_fails_is_what_the_command_says(
    billing: Program, worker: HandDriven
) -> None:
    jobs.add.enqueue(a=1)
    status = billing.send("GET", "/status").json()
    (depth,) = status["queues"]
    assert (depth["queue"], depth["job_type"], depth["ready"]) == (
        "default",
        "tests.sample.add",
        1,
    )
    assert billing.send("GET", "/queues").json()["queues"][0]["ready"] == 1
    (shown,) = status["workers"]
    assert shown["is_alive"]
    assert len(billing.send("GET", "/workers").json()["workers"]) == 1
    jobs.fail.enqueue()
    worker.work()
    (failure,) = billing.send("GET", "/failures").json()["failures"]
    assert failure["job_type"] == "tests.sample.fail"
    assert set(failure) == {"error_class", "job_type", "count", "last"}


def test_endpoints_are_listed_beside_workers_with_what_they_answered(
    billing: Program, settings: Any
) -> None:
    problem_text = "ConnectError: password=hunter2"
    url, auth = "https://shipping.internal:8443/hooks", ("jobs", "s3cret")
    entry = {"url": url, "secrets": [], "auth": auth}
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": {"new": entry}}
    id = scene.endpoint("old", 204, failed=2, answered=9, problem=problem_text)
    began = timezone.now() - timedelta(minutes=7)
    for age in (0, 1):
        started = began + timedelta(minutes=age)
        running: Any = {"status": "running", "started_at": started, "attempts": 1}
        QueuedJob.objects.create(
            job_type_id="tests.sample.add", worker_id=id, **running
        )
    sent = billing.send("GET", "/workers")
    assert not [one for one in (b"hooks", b"s3cret") if one in sent.content]
    listed = sent.json()
    assert listed["workers"] == []
    new, old = listed["endpoints"]
    assert new == {
        **{"name": "new", "address": "shipping.internal:8443", "held_jobs": 0},
        **{"oldest": None, "last": None, "last_failure": None},
        **{"minutes": 15, "answered": 0, "failed": 0},
    }
    assert (old["name"], old["address"], old["held_jobs"]) == ("old", None, 2)
    assert 420 <= old["oldest"] < 480
    assert (old["minutes"], old["answered"], old["failed"]) == (15, 9, 2)
    last, failure = old["last"], old["last_failure"]
    assert (last["class"], last["status"], last["seconds"]) == ("2xx", 204, 0.25)
    assert (failure["class"], failure["status"]) == ("refused", None)
    assert failure["problem"].startswith("ConnectError: password=")
    assert "hunter2" not in failure["problem"]
    assert datetime.fromisoformat(failure["at"]) < datetime.fromisoformat(last["at"])
    assert failure["worker"] == last["worker"] == "web-1:7"
    _new, command = jobqueue("workers", "--format", "json").json
    assert command["endpoint"].keys() <= old.keys()
    assert command["endpoint"]["last_failure"].keys() == failure.keys()


def test_answers_that_nobody_can_read_are_left_out_of_the_list(
    billing: Program,
) -> None:
    id = scene.endpoint("old", 204, failed=0, answered=0)
    for answers in ([], {"last": 7}, {"last": {"class": "new", "at": 1}, "minutes": 9}):
        Worker.objects.filter(pk=id).update(answers=answers)
        (one,) = billing.send("GET", "/workers").json()["endpoints"]
        assert (one["last"], one["answered"]) == (None, 0)


def test_job_types_are_shown_with_what_is_in_force(billing: Program) -> None:
    jobs.add.enqueue(a=1)
    one: Any = billing.send("GET", "/jobs/tests.sample.add").json()
    assert (one["id"], one["attempts"], one["delivery_strategy"]) == (
        "tests.sample.add",
        5,
        "at_least_once",
    )
    listed = billing.send("GET", "/jobs").json()["job_types"]
    assert one in listed
    second: Any = Client(headers={"Authorization": f"Bearer {billing.token}"})
    for path, value in (
        ("/jobqueue/v2/job-types", {"job_types": listed, "cursor": None}),
        ("/jobqueue/v2/job-types/tests.sample.add", one),
    ):
        assert second.get(path, secure=True).json() == value
    sent = second.get("/jobqueue/v2/job-types/x", secure=True)
    problem(sent, 404, "job_type_not_found")
