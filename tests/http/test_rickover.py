"""A client that is written from rickover's README, request by request.

What differs, and is written in the guide: a token instead of a shared password (Basic
works, too), data are an object, and a finished attempt may have a fence besides its
number.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings

from django_jobqueue.models import QueuedJob
from django_jobqueue.operations import create_token
from tests.http.conftest import Program, problem
from tests.remote.conftest import shipping as shipping

pytestmark = pytest.mark.django_db(transaction=True)
TYPE = "invoice-shipments"
JOB = "job_282227eb-3c76-4ef7-af7e-25dff933077f"


@pytest.fixture
def client() -> Program:
    """The user "jobs" with a password."""
    scopes = ["types", "enqueue", "read", "read-data", "operate", "work"]
    secret = create_token("jobs", scopes).text
    made = Program()
    both = b64encode(f"jobs:{secret}".encode()).decode()
    made.defaults["HTTP_AUTHORIZATION"] = f"Basic {both}"
    return made


@override_settings(JOBQUEUE={"HTTP_AUTH": ["django_jobqueue.http.auth.Basic"]})
def test_the_requests_of_its_readme(client: Program) -> None:
    # Create a job type
    new_type = {
        "id": TYPE,
        "delivery_strategy": "at_least_once",
        "attempts": 3,
        "concurrency": 5,
    }
    made: Any = client.send("POST", "/jobs", new_type)
    assert made.status_code == 201
    for key in ("delivery_strategy", "attempts", "concurrency"):
        assert made.json()[key] == new_type[key]  # type: ignore[literal-required]
    assert made.json()["name"] == TYPE

    # Enqueue a new job; "the client can retry in the event of failure"
    new_job = {
        "data": {"shipmentId": "shp_123"},
        "id": JOB,
        "run_after": "2016-01-11T18:26:26.000Z",
        "expires_at": "2116-01-11T20:26:26.000Z",
    }
    for _ in range(2):
        sent: Any = client.send("PUT", f"/jobs/{TYPE}/{JOB}", new_job)
        assert sent.status_code == 202
        job = sent.json()
        assert (job["id"], job["name"], job["status"]) == (JOB, TYPE, "queued")
        assert (job["attempts"], job["data"]) == (3, {"shipmentId": "shp_123"})
    other = {**new_job, "id": JOB.replace("2822", "2823")}
    wrong: Any = client.send("PUT", f"/jobs/{TYPE}/{JOB}", other)
    problem(wrong, 400, "invalid_parameter")

    # The downstream worker gets the job, here by asking for it
    node: Any = client.send("POST", "/workers", {"name": "w", "job_types": [TYPE]})
    worker = node.json()["id"]
    claimed: Any = client.send("POST", f"/workers/{worker}/claim")
    (given,) = claimed.json()["jobs"]
    assert (given["id"], given["attempt"]) == (JOB, 1)
    assert given["data"] == {"shipmentId": "shp_123"}
    running: Any = client.send("GET", f"/jobs/{TYPE}/{JOB}")
    assert running.json()["status"] == "in-progress"

    # Record a job's success or failure: "the attempt number is used to avoid making a
    # stale update"
    said = {"worker": worker, "status": "succeeded"}
    stale: Any = client.send("POST", f"/jobs/{TYPE}/{JOB}", {**said, "attempt": 3})
    problem(stale, 409, "stale_fence")
    ended: Any = client.send("POST", f"/jobs/{TYPE}/{JOB}", {**said, "attempt": 1})
    assert (ended.status_code, ended.json()["status"]) == (200, "succeeded")

    # Get information about a job
    found: Any = client.send("GET", f"/jobs/{TYPE}/{JOB}")
    assert found.json()["status"] == "succeeded"

    # Replay a job: "will create a new UUID and enqueue the job to be run immediately"
    again: Any = client.send("POST", f"/jobs/{TYPE}/{JOB}/replay")
    assert again.status_code == 201
    assert again.json()["id"] != JOB
    assert QueuedJob.objects.get().id == UUID(again.json()["id"].removeprefix("job_"))
