"""What operators do over HTTP: to one job, to queues, and to many jobs at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from django_jobqueue.domain.registry import BULK
from django_jobqueue.models import (
    ArchivedJob,
    AuditEntry,
    BulkOperation,
    JobType,
    Queue,
    QueuedJob,
)
from django_jobqueue.operations import bulk
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import DjangoDatabase
from tests.contrib.http.conftest import Program, problem
from tests.sample import jobs
from tests.store.rows import register
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued

pytestmark = pytest.mark.django_db


@pytest.fixture
def done(worker: HandDriven) -> UUID:
    """The id of a job that succeeded."""
    job = jobs.add.enqueue(a=1, b=2)
    worker.work()
    return job.id


def test_a_replay_is_a_new_job_once_for_each_key(billing: Program, done: UUID) -> None:
    path = f"/jobs/job_{done}/replay"
    first = billing.send("POST", path)
    assert first.status_code == 201, first.content
    assert first.json()["replay_of"] == f"job_{done}"
    assert first.json()["data"] == {"a": 1, "b": 2}
    keyed = [billing.send("POST", path, Idempotency_Key="k").json() for _ in range(2)]
    assert keyed[0] == keyed[1]
    other = billing.send(
        "POST", f"/jobs/tests.sample.add/job_{done}/replay", Idempotency_Key="l"
    )
    assert other.json()["id"] not in (keyed[0]["id"], first.json()["id"])
    assert QueuedJob.objects.count() == 3
    spaced = billing.send("POST", path, Idempotency_Key="a key")
    assert spaced.status_code == 201
    for key in ("", " ", "a ", "é", "x" * 256, "a\tb", "a\x7f"):
        wrong = billing.send("POST", path, Idempotency_Key=key)
        problem(wrong, 400, "invalid_parameter")


def test_a_replay_whose_key_is_used_at_the_same_moment_is_that_one(
    billing: Program, done: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, find = f"/jobs/job_{done}/replay", store_find.find
    first = billing.send("POST", path, Idempotency_Key="k").json()

    def not_seen_yet(db: Any, id: UUID) -> Any:
        if f"job_{id}" != first["id"]:
            return find(db, id)
        monkeypatch.setattr(store_find, "find", find)
        return None

    monkeypatch.setattr(store_find, "find", not_seen_yet)
    sent = billing.send("POST", path, Idempotency_Key="k")
    assert (sent.status_code, sent.json()) == (201, first)
    assert QueuedJob.objects.count() == 1


def test_a_replay_takes_other_options_and_refuses_what_is_not_over(
    billing: Program, done: UUID
) -> None:
    path = f"/jobs/tests.sample.add/job_{done}/replay"
    body = {
        **{"queue": "night", "priority": 7, "max_attempts": 2, "expires": "never"},
        **{"run_after": "2031-01-01T00:00:00Z", "data": {"a": 5}},
    }
    made = billing.send("POST", path, body).json()
    assert {name: made[name] for name in body if name != "expires"} == {
        name: value for name, value in body.items() if name != "expires"
    }
    for wrong, id in (
        ({"data": {"c": 1}}, "invalid_parameter"),
        ({"expires": "now"}, "invalid_parameter"),
        ({"unknown": 1}, "invalid_parameter"),
    ):
        problem(billing.send("POST", path, wrong), 400, id)
    waits = jobs.add.enqueue(a=1).id
    sent = billing.send("POST", f"/jobs/job_{waits}/replay")
    problem(sent, 400, "invalid_replay_attempt")
    for path, status, id in (
        (f"/jobs/tests.sample.keep/job_{done}/replay", 404, "job_not_found"),
        (f"/jobs/job_{uuid4()}/replay", 404, "job_not_found"),
        ("/jobs/x/replay", 400, "invalid_prefix"),
    ):
        problem(billing.send("POST", path), status, id)


def test_secrets_are_edited_by_who_writes_them_not_by_who_guesses_them(
    billing: Program, program: Callable[..., Program]
) -> None:
    job = jobs.keep.enqueue(a={"password": "hunter2", "to": "ann"})
    path = f"/jobs/tests.sample.keep/job_{job.id}"
    seen = billing.send("GET", path).json()["data"]
    written = {"a": {"password": "other", "to": "bob"}}
    guessed = {"data": written, "if_data": job.data}
    problem(billing.send("PATCH", path, guessed), 409, "job_changed")
    masked = {"a": {**seen["a"], "to": "bob"}}
    for body in ({"data": masked}, {"data": masked, "if_data": seen}):
        problem(billing.send("PATCH", path, body), 400, "invalid_parameter")
    blind = program("read", "operate")
    problem(blind.send("PATCH", path, {"data": written}), 403, "forbidden")
    assert QueuedJob.objects.get().data == job.data
    sent = billing.send("PATCH", path, {"data": written, "if_data": seen})
    assert sent.status_code == 200
    assert QueuedJob.objects.get().data == written


def test_a_waiting_job_is_cancelled_run_now_or_changed(
    billing: Program, done: UUID
) -> None:
    job = jobs.add.using(run_after=timedelta(days=1)).enqueue(a=1)
    path = f"/jobs/tests.sample.add/job_{job.id}"
    short = f"/jobs/job_{job.id}"
    assert billing.send("POST", f"{short}/run-now").status_code == 200
    assert QueuedJob.objects.get().run_after <= timezone.now()

    change = {"data": {"a": 2}, "if_data": {"a": 1}, "priority": 9, "queue": "night"}
    sent = billing.send("PATCH", path, change)
    assert sent.status_code == 200, sent.content
    shown = (sent.json()["data"], sent.json()["priority"], sent.json()["queue"])
    assert shown == ({"a": 2}, 9, "night")
    again = {**change, "priority": 1}
    problem(billing.send("PATCH", path, again), 409, "job_changed")
    assert QueuedJob.objects.get().priority == 9
    problem(billing.send("PATCH", path, {}), 400, "missing_parameter")
    problem(billing.send("PATCH", path, {"data": {"c": 1}}), 400, "invalid_parameter")
    problem(billing.send("PATCH", path, {"status": "x"}), 400, "invalid_parameter")

    sent = billing.send("POST", f"{short}/cancel", {"reason": "not wanted"})
    assert sent.json()["status"] == "cancelled"
    assert sent.json()["error_message"] == "not wanted"
    for verb in ("cancel", "run-now"):
        problem(billing.send("POST", f"{short}/{verb}"), 409, "not_queued")
    problem(billing.send("PATCH", path, {"priority": 1}), 409, "not_queued")
    problem(billing.send("PATCH", path, {"data": {"a": 1}}), 409, "not_queued")
    acts = set(AuditEntry.objects.values_list("verb", "by"))
    assert {("run now", "token program-0"), ("edit data", "token program-0")} <= acts


def test_a_waiting_job_is_failed_and_a_running_one_released_if_its_worker_died(
    billing: Program,
) -> None:
    waiting, lost, held = (jobs.add.enqueue(a=n).id for n in range(3))
    for id, lease in ((lost, -60.0), (held, 60.0)):
        worker = register(DjangoDatabase(), f"host:{id}", lease=lease)
        QueuedJob.objects.filter(pk=id).update(
            status="running", worker_id=worker, started_at=timezone.now(), attempts=1
        )
    path = f"/jobs/job_{waiting}/fail"
    for body in (None, {}, {"reason": ""}):
        problem(billing.send("POST", path, body), 400, "missing_parameter")
    sent = billing.send("POST", path, {"reason": "no such order"}).json()
    assert (sent["status"], sent["error_message"]) == ("failed", "no such order")
    problem(billing.send("POST", path, {"reason": "again"}), 409, "not_queued")
    sent = billing.send("POST", f"/jobs/job_{lost}/release").json()
    assert sent["status"] == "queued"
    problem(billing.send("POST", f"/jobs/job_{held}/release"), 409, "not_queued")
    assert QueuedJob.objects.get(pk=held).status == "running"
    other = billing.send("POST", f"/jobs/job_{held}/fail", {"reason": "x"})
    problem(other, 409, "not_queued")


def test_job_types_and_queues_are_paused_and_resumed(
    billing: Program, program: Callable[..., Program]
) -> None:
    jobs.add.enqueue(a=1)
    until = (timezone.now() + timedelta(hours=1)).isoformat()
    body = {"reason": "broken", "resume_at": until}
    for path, row in (
        ("/jobs/tests.sample.add", lambda: JobType.objects.get(pk="tests.sample.add")),
        ("/queues/default", lambda: Queue.objects.get(pk="default")),
    ):
        sent = billing.send("POST", f"{path}/pause", body)
        assert sent.json()["is_paused"], sent.content
        assert (row().paused, row().paused_by) == (True, "token program-0")
        assert row().paused_reason == "broken"
        past = {"resume_at": "2020-01-01T00:00:00Z"}
        problem(billing.send("POST", f"{path}/pause", past), 400, "invalid_parameter")
        assert not billing.send("POST", f"{path}/resume").json()["is_paused"]
        assert not row().paused
    missing = billing.send("POST", "/jobs/tests.sample.ad/pause")
    problem(missing, 404, "job_type_not_found")
    some = program("operate", job_types=["tests.*"])
    assert some.send("POST", "/jobs/tests.sample.add/pause").status_code == 200
    problem(some.send("POST", "/queues/default/pause"), 403, "forbidden")
    mail = program("operate", queues=["mail"])
    problem(mail.send("POST", "/jobs/tests.sample.add/pause"), 403, "forbidden")
    assert mail.send("POST", "/queues/mail/pause").status_code == 200


def test_a_bulk_operation_with_a_key_is_started_once(
    billing: Program, program: Callable[..., Program]
) -> None:
    jobs.add.enqueue(a=1)
    body = {"kind": "cancel", "where": "type:tests.sample.add"}

    def start(client: Program, **changes: Any) -> str:
        sent = client.send(
            "POST", "/operations", {**body, **changes}, Idempotency_Key="k"
        )
        assert sent.status_code == 202, sent.content
        return str(sent.json()["id"])

    first = start(billing)
    assert start(billing) == first
    assert BulkOperation.objects.count() == 1
    assert len(queued(job_type=BULK)) == 1
    # A draft whose request died before it was started is started by the next.
    BulkOperation.objects.update(state="draft", job_id=None)
    assert start(billing) == first
    assert BulkOperation.objects.get().state == "queued"
    # Another body, and another caller, are other requests.
    assert len({first, start(billing, limit=1), start(program())}) == 3
    for changes in ({}, {"dry_run": True}):
        wrong = {**body, **changes}
        sent = billing.send("POST", "/operations", wrong, Idempotency_Key="")
        problem(sent, 400, "invalid_parameter")


def test_operations_of_a_caller_are_few_and_count_after_the_jobs_of_the_project(
    billing: Program, program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "AT_ONCE", 0.0)  # as of many jobs
    body = {"kind": "cancel", "where": "type:tests.sample.add"}
    tried = billing.send("POST", "/operations", {**body, "dry_run": True})
    assert (tried.status_code, tried.json()["total"]) == (200, None)
    assert queued(job_type=BULK) == []
    for _ in range(10):
        assert billing.send("POST", "/operations", body).status_code == 202
    for more in (body, {**body, "dry_run": True}):
        problem(billing.send("POST", "/operations", more), 429, "too_many_operations")
    assert program().send("POST", "/operations", body).status_code == 202
    made = queued(job_type=BULK)
    assert len(made) == 11
    assert max(job.priority for job in made) < 0


def test_a_bulk_operation_is_tried_started_watched_and_stopped(
    billing: Program, program: Callable[..., Program]
) -> None:
    jobs.add.using(tags=["old"]).enqueue(a=1)
    jobs.add.enqueue(a=2)
    body = {"kind": "cancel", "where": "type:tests.sample.add tag:old"}
    tried = billing.send("POST", "/operations", {**body, "dry_run": True})
    assert (tried.status_code, tried.json()["total"]) == (200, 1), tried.content
    assert not BulkOperation.objects.exists()
    started = billing.send("POST", "/operations", {**body, "reason": "old"})
    assert (started.status_code, started.json()["state"]) == (202, "queued")
    id = started.json()["id"]
    assert billing.send("GET", f"/operations/{id}").json() == started.json()
    listed = billing.send("GET", "/operations").json()["operations"]
    assert listed == [started.json()]
    stopped = billing.send("POST", f"/operations/{id}/stop").json()
    assert stopped["state"] == "stopped"

    for wrong in (
        {**body, "kind": "prune"},
        {**body, "where": "tga:old"},
        {**body, "where": "state:nothing"},
        {**body, "where": "019aa2f0"},
        {**body, "limit": 0},
        {"kind": "cancel"},
    ):
        sent = billing.send("POST", "/operations", wrong)
        assert sent.status_code == 400, wrong
    missing = billing.send("GET", f"/operations/{uuid4()}")
    problem(missing, 404, "operation_not_found")
    problem(billing.send("GET", "/operations/x"), 400, "invalid_parameter")

    some = program("operate", "read", job_types=["tests.*"])
    assert (
        some.send("POST", "/operations", {**body, "dry_run": True}).status_code == 200
    )
    for named in ("type:shop.mail", "type:tests.sample.add type:shop.mail"):
        wrong = {"kind": "cancel", "where": named}
        problem(some.send("POST", "/operations", wrong), 403, "forbidden")
    jobs.keep.enqueue(a=1)
    own = some.send("POST", "/operations", {"kind": "cancel", "where": ""})
    assert (own.status_code, own.json()["total"]) == (202, 3)  # not that of jobqueue.*
    path = f"/operations/{own.json()['id']}"
    assert some.send("GET", path).json() == own.json()
    assert some.send("POST", f"{path}/stop").json()["state"] == "stopped"
    missing = some.send("POST", f"/operations/{id}/stop")
    problem(missing, 404, "operation_not_found")
    problem(some.send("GET", "/operations"), 403, "forbidden")
    assert ArchivedJob.objects.count() == 0
