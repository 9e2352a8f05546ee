"""Enqueues over HTTP: idempotent by the id, strict about everything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection

from django_jobqueue import operations
from django_jobqueue.contrib.http import job_routes
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.waiting import Waiting
from tests.contrib.http.conftest import Program, problem
from tests.sample import jobs
from tests.store.rows import archive
from tests.support.waiting import eventually

ADD = "/jobs/tests.sample.add"
pytestmark = pytest.mark.django_db


def path_of(id: Any = None, job_type: str = "tests.sample.add") -> str:
    """The path of a job with this id, or with a new one."""
    return f"/jobs/{job_type}/job_{id or uuid4()}"


def test_a_put_enqueues_once_however_often_it_is_sent(billing: Program) -> None:
    path, body = path_of(), {"data": {"a": 1, "b": 2}}
    first = billing.send("PUT", path, body)
    second = billing.send("PUT", path, {"data": {"a": 5}})
    assert (first.status_code, second.status_code) == (202, 202), first.content
    assert first.json() == second.json()
    job = QueuedJob.objects.get()
    assert (job.data, job.enqueued_by) == (body["data"], "token program-0")
    assert first.json() == {
        "id": f"job_{job.pk}",
        "name": "tests.sample.add",
        "status": "queued",
        "attempts": 5,
        "attempt": 0,
        "max_attempts": 5,
        "crashes": 0,
        "queue": "default",
        "priority": 0,
        "tags": [],
        "created_at": job.created_at.isoformat().replace("+00:00", "Z"),
        "run_after": job.run_after.isoformat().replace("+00:00", "Z"),
        "expires_at": None,
        "started_at": None,
        "finished_at": None,
        "replay_of": None,
        "error_class": None,
        "data": body["data"],
        "metadata": None,
        "result": None,
        "error_message": "",
    }


def test_every_option_reaches_the_row(billing: Program) -> None:
    body = {
        "data": {"a": 1},
        "run_after": "2030-01-01T10:00:00+02:00",
        "expires_at": "2031-01-01T00:00:00Z",
        "queue": "night",
        "priority": -7,
        "max_attempts": 9,
        "timeout": 1.5,
        "tags": ["x", "y"],
        "metadata": {"tenant": 7},
        "unique_key": "only",
    }
    response = billing.send("PUT", path_of(), body)
    assert response.status_code == 202, response.content
    job = QueuedJob.objects.get()
    assert job.run_after.isoformat() == "2030-01-01T08:00:00+00:00"
    assert job.timeout is not None
    assert job.timeout.total_seconds() == 1.5
    shown = (job.queue, job.priority, job.max_attempts, job.tags, job.metadata)
    assert shown == ("night", -7, 9, ["x", "y"], {"tenant": 7})
    assert job.unique_key is not None
    problem(billing.send("PUT", path_of(), body), 409, "duplicate_job")


@pytest.mark.django_db(transaction=True)
def test_of_two_puts_at_once_one_makes_the_job_and_both_get_it() -> None:
    text = create_token("twice", "enqueue").text
    for _ in range(10):
        path, gate = path_of(), Barrier(2)

        def send(path: str = path, gate: Barrier = gate) -> tuple[int, bytes]:
            gate.wait()
            answer = Program(text).send("PUT", path, {"data": {"a": 1}})
            connection.close()
            return answer.status_code, answer.content

        with ThreadPoolExecutor(2) as pool:
            first, second = (pool.submit(send) for _ in range(2))
            assert first.result() == second.result()
            assert first.result()[0] == 202
    assert QueuedJob.objects.count() == 10


def test_an_id_whose_job_is_over_cannot_be_used_again(
    billing: Program, worker: Any
) -> None:
    path = path_of()
    billing.send("PUT", path, {"data": {"a": 1, "b": 2}})
    worker.work()
    assert ArchivedJob.objects.get().status == "succeeded"
    again = billing.send("PUT", path, {"data": {"a": 1, "b": 2}})
    problem(again, 400, "job_already_archived")
    shown = billing.send("GET", path).json()
    assert (shown["status"], shown["result"], shown["attempts"]) == ("succeeded", 3, 5)
    assert billing.send("GET", path + "?wait=5").json() == shown


MANY = [{"data": {"a": n}} for n in range(3)]


@pytest.mark.parametrize(
    "several",
    [MANY, [*MANY[:2], {"data": {"a": 2}, "priority": 3, "id": f"job_{uuid4()}"}]],
    ids=["alike", "each with its options"],
)
def test_many_are_enqueued_at_once_in_order(
    billing: Program, several: list[dict[str, Any]]
) -> None:
    response = billing.send("POST", ADD, {"jobs": several})
    assert response.status_code == 202, response.content
    ids = response.json()["ids"]
    rows = {f"job_{job.pk}": job for job in QueuedJob.objects.all()}
    assert [rows[id].data for id in ids] == [one["data"] for one in several]
    assert all(id == one.get("id", id) for id, one in zip(ids, several, strict=True))
    assert {row.enqueued_by for row in rows.values()} == {"token program-0"}


def test_of_many_none_is_enqueued_if_one_is_wrong(billing: Program) -> None:
    several = [{"data": {"a": 1}, "priority": 1}, {"data": {"c": 1}}]
    response = billing.send("POST", ADD, {"jobs": several})
    assert "jobs[1]" in problem(response, 400, "invalid_parameter")["detail"]
    too_many = {"jobs": [{"data": {}}] * 1_001}
    problem(billing.send("POST", ADD, too_many), 400, "invalid_parameter")
    problem(billing.send("POST", ADD, {"jobs": []}), 400, "invalid_parameter")
    assert not QueuedJob.objects.exists()


WRONG_BODIES: list[tuple[bytes, str]] = [
    (b"", "missing_parameter"),
    (b"{", "invalid_request"),
    (b"[]", "invalid_request"),
    (b"7", "invalid_request"),
    (b"\xff\xfe{\x00}\x00", "invalid_request"),
    (b'{"data": {}, "data": {}}', "invalid_request"),
    (b'{"data": {"a": NaN}}', "invalid_request"),
    (b'{"data": {"a": -Infinity}}', "invalid_request"),
    (b'{"data": {"a": 1e999}}', "invalid_request"),
    (b'{"data": {"a": ' + b"1" * 5_000 + b"}}", "invalid_request"),
    (b'{"data": {"a": "\\u0000"}}', "invalid_request"),
    (b'{"data": {"\\ud800": 1}}', "invalid_request"),
    (b'{"data": {"a": ' + b"[" * 99 + b"]" * 99 + b"}}", "invalid_request"),
    (b'{"data": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_001, "invalid_request"),
    (b"{}", "missing_parameter"),
    (b'{"data": null}', "invalid_parameter"),
    (b'{"data": [1]}', "invalid_parameter"),
    (b'{"data": {"a": 1, "zzz": 2}}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "unknown": 2}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "priority": true}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "priority": "1"}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "priority": 1.0}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "priority": 101}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "max_attempts": 0}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "max_attempts": 1' + b"0" * 40 + b"}", "invalid_parameter"),
    (b'{"data": {"a": 1}, "timeout": false}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "timeout": 1e300}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "timeout": 1e-300}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "queue": ""}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "queue": "a b\\n"}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "queue": "' + b"q" * 500 + b'"}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "tags": "x"}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "tags": [""]}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "metadata": [1]}', "invalid_parameter"),
    (b'{"data": {"a": 1}, "unique_key": ""}', "invalid_parameter"),
    *(
        (json.dumps({"data": {"a": 1}, name: text}).encode(), "invalid_parameter")
        for name in ("run_after", "expires_at")
        for text in (
            *("soon", "", "1764150000", "2026-11-26", "2026-11-26T10:00:00"),
            *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00"),
            *("2026-02-30T10:00:00Z", 1764150000, True, ["2026-11-26T10:00:00Z"]),
        )
    ),
    (
        b'{"data": {"a": 1}, "run_after": "2031-01-01T00:00:00Z",'
        b' "expires_at": "2030-01-01T00:00:00Z"}',
        "invalid_parameter",
    ),
]


def test_a_wrong_body_is_a_problem_and_no_job(billing: Program) -> None:
    answers = {body: billing.send("PUT", path_of(), body) for body, _ in WRONG_BODIES}
    given = [(body[:80], answers[body].status_code) for body, _ in WRONG_BODIES]
    assert given == [(body[:80], 400) for body, _ in WRONG_BODIES]
    shown = [(body[:80], answers[body].json()["id"]) for body, _ in WRONG_BODIES]
    assert shown == [(body[:80], id) for body, id in WRONG_BODIES]
    assert not QueuedJob.objects.exists()


def test_a_wrong_path_is_a_problem(billing: Program) -> None:
    for path, status, id in (
        ("/jobs/tests.sample.add/7", 400, "invalid_prefix"),
        ("/jobs/tests.sample.add/job_7", 400, "invalid_uuid"),
        (f"/jobs/tests.sample.add/job_{uuid4().hex}", 400, "invalid_uuid"),
        (f"/jobs/tests.sample.add/job_{{{uuid4()}}}", 400, "invalid_uuid"),
        (f"/jobs/tests.sample.ad/job_{uuid4()}", 404, "job_type_not_found"),
        (f"/jobs/%00/job_{uuid4()}", 400, "invalid_parameter"),
        (f"/jobs/{'x' * 300}/job_{uuid4()}", 400, "invalid_parameter"),
        (f"/jobs/{'%F0%9F%92%A9'}/job_{uuid4()}", 404, "job_type_not_found"),
        (f"/jobs/%ED%A0%80/job_{uuid4()}", 404, "job_type_not_found"),
    ):
        shown = problem(billing.send("PUT", path, {"data": {"a": 1}}), status, id)
        if path.startswith("/jobs/tests.sample.ad/"):
            assert "Did you mean 'tests.sample.add'" in shown["detail"]


def test_too_large_data_have_an_id_of_their_own(billing: Program) -> None:
    data = {"a": "x" * 1_000_001}
    sent = billing.send("PUT", path_of(job_type="tests.sample.keep"), {"data": data})
    problem(sent, 413, "entity_too_large")
    sent = billing.send("PUT", path_of(), {"data": {"a": "x" * 1_200_000}})
    problem(sent, 413, "entity_too_large")


def test_the_id_of_a_job_of_another_type_is_refused(billing: Program) -> None:
    id = jobs.add.enqueue(a=1).id
    sent = billing.send("PUT", path_of(id, "tests.sample.keep"), {"data": {"a": 1}})
    problem(sent, 409, "duplicate_job")
    several = {"jobs": [{"data": {"a": 2}}, {"data": {"a": 1}, "id": f"job_{id}"}]}
    sent = billing.send("POST", "/jobs/tests.sample.keep", several)
    assert "jobs[1]" in problem(sent, 409, "duplicate_job")["detail"]
    assert QueuedJob.objects.get().job_type_id == "tests.sample.add"


def test_a_caller_does_not_say_in_whose_schema_a_job_runs(
    billing: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = {"data": {"a": 1}, "metadata": {"tenant": "another"}}
    assert billing.send("PUT", path_of(), job).status_code == 202
    monkeypatch.setattr(apps, "is_installed", lambda name: name == "django_tenants")
    problem(billing.send("PUT", path_of(), job), 400, "invalid_parameter")
    several = billing.send("POST", "/jobs/tests.sample.add", {"jobs": [job]})
    problem(several, 400, "invalid_parameter")


@pytest.mark.parametrize(
    ("handler", "data"),
    [
        (jobs.add_alone, {"a": 1}),
        (jobs.render, {"document": 1}),
        (jobs.settle, {"document": 1}),
        (jobs.remind, {"user": 1}),
        (jobs.greet_once, {"user": 1}),
    ],
)
def test_a_duplicate_changes_and_tells_nothing_of_a_job_of_others(
    program: Callable[..., Program], handler: Handler[..., Any], data: dict[str, int]
) -> None:
    theirs = handler.using(queue="tenant-b", tags=["secret"]).enqueue(**data)
    before = QueuedJob.objects.values().get()
    ours = program("enqueue", "read", queues=["tenant-a"])
    job = {"data": data, "queue": "tenant-a"}
    other = {**job, "data": {**data, "why": "b"}, "priority": -1}
    for several in ([job], [job, other]):
        if "why" not in handler.declaration.parameters.names:
            several = several[:1]
        sent = ours.send("POST", f"/jobs/{handler.name}", {"jobs": several})
        detail = problem(sent, 409, "duplicate_job")["detail"]
        assert "Another job has this id or unique key." in detail
        assert str(theirs.id) not in detail
    assert QueuedJob.objects.values().get() == before


def test_of_a_job_that_is_pruned_nobody_knows_whose_it_was(
    program: Callable[..., Program],
) -> None:
    pruned = jobs.remind.using(queue="tenant-b").enqueue(user=1)
    QueuedJob.objects.all().delete()
    job = {"data": {"user": 1}, "queue": "tenant-a"}
    path = f"/jobs/{jobs.remind.name}"
    ours = program("enqueue", queues=["tenant-a"])
    key = {**job, "unique_key": "a"}
    for several in ([job], [job, key]):
        problem(ours.send("POST", path, {"jobs": several}), 409, "duplicate_job")
    everybody = program("enqueue").send("POST", path, {"jobs": [job, key]})
    assert str(pruned.id) in everybody.content.decode()


@pytest.mark.parametrize("bound", [{"queues": ["mail"]}, {"job_types": ["tests.*"]}])
def test_whoever_is_bound_gives_jobs_no_more_than_their_type(
    program: Callable[..., Program], bound: dict[str, list[str]]
) -> None:
    """Or other tenants of the same workers would wait, in spite of an operator."""
    held = jobs.add.using(queue="mail").enqueue(1).id
    done = archive(jobs.add.name, queue="mail", priority=-9)
    minute = timedelta(minutes=1)
    operations.override(jobs.add, timeout=minute, priority=-5, max_attempts=3)
    ours, everybody = program(**bound), program("enqueue", "operate", "read")
    path = f"/jobs/{jobs.add.name}"
    job: dict[str, Any] = {"data": {"a": 1}, "queue": "mail"}
    requests: list[tuple[str, str, Callable[[Any], Any]]] = [
        ("PUT", path_of(), lambda given: {**job, **given}),
        ("POST", path, lambda given: {"jobs": [job, {**job, **given}]}),
        ("POST", f"{path}/job_{done}/replay", lambda given: given),
        ("PATCH", f"{path}/job_{held}", lambda given: given),
    ]
    for name, most in (("priority", -5), ("timeout", 60), ("max_attempts", 3)):
        for method, to, body in requests:
            if name == "timeout" and to not in (requests[0][1], path):
                continue
            if name == "max_attempts" and method == "PATCH":
                continue
            sent = ours.send(method, to, body({name: most + 1}))
            said = f"{name} must be at most {most}, as the job type says"
            assert said in problem(sent, 403, "forbidden")["detail"]
            for caller, more in ((ours, 0), (everybody, 1)):
                to = path_of() if method == "PUT" else to
                sent = caller.send(method, to, body({name: most + more}))
                assert sent.status_code < 300, sent.content


def test_a_pattern_of_queues_bounds_where_jobs_may_wait(
    program: Callable[..., Program],
) -> None:
    mail = program("enqueue", queues=["mail-*"])
    body: dict[str, Any] = {"data": {"a": 1}}
    problem(mail.send("PUT", path_of(), body), 403, "forbidden")
    sent = mail.send("PUT", path_of(), {**body, "queue": "mail-7"})
    assert sent.status_code == 202
    assert "data" not in sent.json()
    several = {"jobs": [{**body, "queue": "mail-1"}, body]}
    problem(mail.send("POST", ADD, several), 403, "forbidden")
    assert QueuedJob.objects.count() == 1


@pytest.mark.parametrize("held", ["before it waits", "while it waits"])
def test_a_request_waits_for_a_job_that_runs(
    billing: Program, worker: Any, held: str
) -> None:
    """It is told when the job is over, whatever state it began to wait in."""
    path = path_of()
    billing.send("PUT", path, {"data": {"a": 1, "b": 2}})
    if held == "before it waits":
        worker.claim()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(in_thread, billing, path + "?wait=20")
        eventually(lambda: QueuedJob.objects.filter(awaited=True).exists())
        if held == "while it waits":
            worker.claim()
        assert not answer.done()
        worker.run()
        worker.finish()
        shown = answer.result(20)
    assert (shown["status"], shown["result"]) == ("succeeded", 3)


def test_a_job_that_moves_out_of_sight_while_it_is_waited_for_is_not_shown(
    program: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = jobs.add.using(queue="tenant-a").enqueue(a=1)

    def move(waiting: Waiting, *_: Any) -> Any:
        operations.reschedule(waiting.id, queue="tenant-b")
        raise TimeoutError

    monkeypatch.setattr(job_routes, "until_over", move)
    ours = program("read", queues=["tenant-a"])
    assert ours.send("GET", path_of(job.id)).status_code == 200
    problem(ours.send("GET", path_of(job.id) + "?wait=1"), 404, "job_not_found")


def in_thread(program: Program, path: str) -> Any:
    """The answer to a request of another thread."""
    try:
        return program.send("GET", path).json()
    finally:
        connection.close()
