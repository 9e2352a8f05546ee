"""Programs that are written from rickover's README, line by line: a client, and a
downstream server. The quoted lines are from there.

What differs is in the guide: data are an object, a list is in an object, an expired job
that is replayed runs, and the code says which job types are sent downstream.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import ArchivedJob, JobType, QueuedJob
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.expire import expire
from tests.contrib.http.conftest import Program, problem
from tests.contrib.remote.conftest import EndpointServer, Reply
from tests.contrib.remote.conftest import declare as declare
from tests.contrib.remote.conftest import shipping as shipping
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db(transaction=True)
TYPE = "invoice-shipments"
JOB = "job_282227eb-3c76-4ef7-af7e-25dff933077f"
DATA = {"shipmentId": "shp_123"}
NEW_TYPE = {
    "id": TYPE,
    "delivery_strategy": "at_least_once",
    "attempts": 3,
    "concurrency": 5,
}
ACCEPTED = Reply(202)


@pytest.fixture
def client(shipping: EndpointServer, settings: Any) -> Program:  # noqa: F811
    """ "Call server.AddUser to add an authenticated user and password"."""
    settings.JOBQUEUE = {
        **settings.JOBQUEUE,
        "HTTP_AUTH": ["django_jobqueue.contrib.http.auth.Basic"],
    }
    scopes = ["types", "enqueue", "read", "read-data", "operate", "work"]
    made, token = Program(), create_token("jobs", scopes).text
    secret = token.split("_", 2)[2]
    both = b64encode(f"jobs:{secret}".encode()).decode()
    made.defaults["HTTP_AUTHORIZATION"] = f"Basic {both}"
    return made


def test_create_a_job_type(client: Program) -> None:
    """ "This returns a models.Job on success." """
    made: Any = client.send("POST", "/jobs", NEW_TYPE)
    assert made.status_code == 201
    for key, value in NEW_TYPE.items():
        assert made.json()[key] == value
    assert made.json()["name"] == TYPE
    once: Any = client.send(
        "POST",
        "/jobs",
        {"name": "pay", "delivery_strategy": "at_most_once", "concurrency": 1},
    )
    assert once.status_code == 201
    assert once.json()["attempts"] == 1


def test_enqueue_a_new_job(client: Program) -> None:
    client.send("POST", "/jobs", NEW_TYPE)
    new_job = {
        "data": DATA,
        "id": JOB,
        "run_after": "2016-01-11T18:26:26.000Z",
        "expires_at": "2116-01-11T20:26:26.000Z",
    }
    for _ in range(2):  # "The client can and should retry in the event of failure."
        sent: Any = client.send("PUT", f"/jobs/{TYPE}/{JOB}", new_job)
        assert sent.status_code == 202
        job = sent.json()
        assert (job["id"], job["name"], job["status"]) == (JOB, TYPE, "queued")
        assert (job["attempts"], job["data"]) == (3, DATA)
    # "or null to indicate it can run now"
    now = {"data": DATA, "run_after": None, "expires_at": None}
    other: Any = client.send("PUT", f"/jobs/{TYPE}/job_{uuid4()}", now)
    assert other.status_code == 202
    assert other.json()["expires_at"] is None
    wrong: Any = client.send("PUT", f"/jobs/{TYPE}/job_{uuid4()}", new_job)
    problem(wrong, 400, "invalid_parameter")


def test_get_information_about_a_job(client: Program) -> None:
    """ "This looks in the queued_jobs table first, then the archived_jobs table" """
    client.send("POST", "/jobs", NEW_TYPE)
    client.send("PUT", f"/jobs/{TYPE}/{JOB}", {"data": DATA})
    path = f"/jobs/{TYPE}/{JOB}"
    queued: Any = client.send("GET", path)
    assert queued.json()["status"] == "queued"
    client.send("POST", f"/jobs/{JOB}/cancel")
    archived: Any = client.send("GET", path)
    assert archived.json()["status"] == "cancelled"
    again: Any = client.send("PUT", path, {"data": DATA})
    problem(again, 400, "job_already_archived")


def test_a_job_that_is_dequeued_too_late_and_its_replay(client: Program) -> None:
    """ "We don't send it to the downstream worker, and insert it immediately into the
    archived_jobs table with status expired." """
    client.send("POST", "/jobs", NEW_TYPE)
    path = f"/jobs/{TYPE}/{JOB}"
    client.send("PUT", path, {"data": DATA, "expires_at": "2116-01-11T20:26:26.000Z"})
    long_ago = timezone.now() - timedelta(hours=1)
    QueuedJob.objects.update(expires_at=long_ago)
    expire(DjangoDatabase())
    got: Any = client.send("GET", path)
    assert got.json()["status"] == "expired"
    # "Will create a new UUID", and here the same lifetime again unless it is asked for.
    kept: Any = client.send("POST", f"{path}/replay", {"expires": "keep"})
    assert kept.status_code == 201
    assert kept.json()["id"] != JOB
    expire(DjangoDatabase())
    assert ArchivedJob.objects.filter(status="expired").count() == 2
    runs: Any = client.send("POST", f"{path}/replay")
    assert runs.json()["status"] == "queued"


def test_list_completed_jobs(client: Program) -> None:
    """ "Pass name=x to filter by jobs named x. Pass limit=x to limit results." """
    for name in (TYPE, "pay"):
        client.send("POST", "/jobs", {**NEW_TYPE, "id": name})
        for _ in range(2):
            id = f"job_{uuid4()}"
            client.send("PUT", f"/jobs/{name}/{id}", {"data": DATA})
            client.send("POST", f"/jobs/{id}/cancel")

    def names(query: str) -> list[str]:
        listed: Any = client.send("GET", f"/archived-jobs{query}")
        return [job["name"] for job in listed.json()["jobs"]]

    assert sorted(names("")) == [TYPE] * 2 + ["pay"] * 2
    assert names(f"?name={TYPE}") == [TYPE] * 2
    assert names(f"?name={TYPE}&limit=1") == [TYPE]


def test_server_authentication(client: Program) -> None:
    path = f"/jobs/{TYPE}/{JOB}"
    nobody: Any = Program().send("GET", path)
    problem(nobody, 401, "missing_authentication")
    for pair in ("jobs:wrong", "somebody:wrong"):
        stranger = Program()
        given = b64encode(pair.encode()).decode()
        stranger.defaults["HTTP_AUTHORIZATION"] = f"Basic {given}"
        refused: Any = stranger.send("GET", path)
        problem(refused, 403, "incorrect_password")


class Downstream:
    """A downstream server: it does each job that it is sent, and makes a callback."""

    def __init__(self, server: EndpointServer, client: Program) -> None:
        self.server, self.client = server, client
        self.called_back = 0

    def call_back(self, status: str = "succeeded", **more: Any) -> list[Any]:
        """ "When the downstream server has finished processing the job, it should make
        a callback to the Rickover server" """
        answers = []
        received = self.server.received[self.called_back :]
        self.called_back = len(self.server.received)
        for request in received:
            job = request.json
            # "Note you must include the attempt number in your callback"
            said = {"status": status, "attempt": job["attempts"], **more}
            path = request.path.removeprefix("/v1")
            answers.append(self.client.send("POST", path, said))
        return answers


@pytest.fixture
def downstream(shipping: EndpointServer, client: Program) -> Downstream:
    """A downstream server that accepts each job."""
    shipping.answer(ACCEPTED)
    return Downstream(shipping, client)


Declare = Callable[..., Handler[..., Any]]


def enqueued(client: Program, declare: Declare, **options: Any) -> str:
    """The path of a job that is sent downstream."""
    declare(TYPE, max_attempts=3, backoff="immediate", **options)
    path = f"/jobs/{TYPE}/{JOB}"
    sent: Any = client.send("PUT", path, {"data": DATA})
    assert sent.status_code == 202
    return path


def test_processing_jobs(
    client: Program, declare: Declare, worker: HandDriven, downstream: Downstream
) -> None:
    """ "The downstream.Client will make a POST request to /v1/jobs/:job-name/:job-id"
    with Basic auth, and username "jobs"."""
    path = enqueued(client, declare)
    worker.work()
    (request,) = downstream.server.received
    assert (request.method, request.path) == ("POST", f"/v1{path}")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["accept"] == "application/json"
    assert request.headers["authorization"].startswith("Basic ")
    said = {"data": DATA, "id": JOB, "attempts": 3}
    assert request.json.items() >= said.items()
    (answer,) = downstream.call_back()
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")
    assert client.send("GET", path).json()["status"] == "succeeded"  # type: ignore[attr-defined]


def test_record_a_failure(
    client: Program, declare: Declare, worker: HandDriven, downstream: Downstream
) -> None:
    """ "If a failed job is retryable, we'll insert the job back into the queued_jobs
    table"; "If this request times out or errors, you can try it again; the attempt
    number is used to avoid making a stale update." """
    path = enqueued(client, declare)
    for left in (3, 2):
        worker.work()
        assert downstream.server.received[-1].json["attempts"] == left
        (answer,) = downstream.call_back("failed")
        assert (answer.status_code, answer.json()["status"]) == (200, "queued")
        again: Any = client.send("POST", path, {"status": "failed", "attempt": left})
        problem(again, 409, "stale_fence")
    worker.work()
    (answer,) = downstream.call_back("failed")
    assert answer.json()["status"] == "failed"
    assert ArchivedJob.objects.get().attempts == 3


def test_a_failure_that_should_not_be_retried(
    client: Program, declare: Declare, worker: HandDriven, downstream: Downstream
) -> None:
    """ "Include "retryable": false in the body of the POST request, which will
    immediately archive the job." """
    enqueued(client, declare)
    worker.work()
    (answer,) = downstream.call_back("failed", retryable=False)
    assert answer.json()["status"] == "failed"


def test_a_job_whose_claims_were_given_back_is_done_once(
    client: Program, declare: Declare, worker: HandDriven, downstream: Downstream
) -> None:
    """However often it was claimed before it was sent: what it was sent is right."""
    enqueued(client, declare)
    QueuedJob.objects.update(fence=4)  # as after claims that were given back
    worker.work()
    (request,) = downstream.server.received
    assert request.json["fence"] > 1
    (answer,) = downstream.call_back()
    assert (answer.status_code, answer.json()["status"]) == (200, "succeeded")


def test_a_downstream_server_that_never_hits_the_callback(
    client: Program, declare: Declare
) -> None:
    """ "The JobProcessor will time out after 5 minutes and mark the job as failed." """
    enqueued(client, declare)
    assert JobType.objects.get(pk=TYPE).timeout == timedelta(minutes=5)
