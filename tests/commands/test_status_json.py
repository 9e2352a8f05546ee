"""``jobqueue status --format json``, whose keys are promised to programs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import JobType
from django_jobqueue.store import rollup
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rollup import Count
from tests.commands.conftest import jobqueue, make_archived
from tests.stats import rows as stats

pytestmark = pytest.mark.django_db


def figures() -> dict[str, Any]:
    found: dict[str, Any] = jobqueue("status --format json").json
    return found


def test_the_keys_are_these() -> None:
    found = figures()
    keys = "time depth_cap window notices queues workers standby throughput failures"
    assert list(found) == [*keys.split(), "paused"]
    assert datetime.fromisoformat(found["time"]).utcoffset() is not None
    assert (found["depth_cap"], found["window"]) == (10_000, 3_600)
    assert found["notices"] == [
        {
            "code": "no_worker",
            "message": "No worker is alive. Start one with manage.py runworkers.",
            "queue": None,
            "job_type": None,
            "jobs": 0,
        }
    ]


def test_queues_and_workers_have_their_figures() -> None:
    stats.queued()
    stats.queued(run_after=stats.ago(hours=-1))
    lease = stats.ago(seconds=-15)
    row = stats.worker(queues=["mail"], threads=3, async_slots=7, lease_until=lease)
    stats.worker("web-1:2", queues=["mail"])
    found = figures()
    (queue,) = found["queues"]
    assert 0 <= queue.pop("oldest") < 60
    counts = {"ready": 1, "later": 1, "retrying": 0, "running": 0}
    assert queue == {"queue": "default", "job_type": "tests.sample.add", **counts}
    one, _ = found["workers"]
    assert 10 < one.pop("lease") <= 15
    assert 0 <= one.pop("age") < 60
    named = {"id": row.id, "name": "web-1:1", "state": "running", "queues": ["mail"]}
    slots = {"running": 0, "threads": 3, "async_slots": 7, "memory": 0}
    flags = {"alive": True, "listening": False, "remote": False}
    assert one == {**named, **slots, **flags, "release": "", "end": ""}
    (notice,) = found["notices"]
    assert (notice["code"], notice["queue"]) == ("queue_not_served", "default")


def test_throughput_and_failures_have_their_figures() -> None:
    count = Count("tests.sample.add", "mail", "r1", 7, 1, 2, 3)
    count.attempt(ran=0.039, waited=0.9)
    rollup.add(DjangoDatabase(), [count, Count("tests.sample.say", "mail", other=1)])
    make_archived(2, error_class="shop.Gone", error_message="no\nsuch order")
    found = figures()
    first, second = found["throughput"]
    times = {name: pytest.approx(0.0398, abs=0.0001) for name in ("run_p50", "run_p95")}
    counts = {"succeeded": 7, "failed": 1, "retried": 2, "other": 3, "wait_p95": 1.0}
    of_add = {"job_type": "tests.sample.add"}
    assert first == {"queue": "mail", **of_add, **counts, **times}
    assert (second["wait_p95"], second["run_p50"]) == (None, None)
    (failure,) = found["failures"]
    last = datetime.fromisoformat(failure.pop("last"))
    assert timedelta(0) < timezone.now() - last < timedelta(hours=1)
    why = {"error_class": "shop.Gone", "message": "no\nsuch order"}
    assert failure == {**of_add, **why, "count": 2}


def test_a_pause_has_who_why_since_and_until() -> None:
    until = timezone.now() + timedelta(hours=1)
    operations.pause(["mail"], queues=True, by="anna", reason="down", resume_at=until)
    JobType.objects.filter(name="tests.sample.say").update(concurrency_override=0)
    queue, job_type = figures()["paused"]
    assert datetime.fromisoformat(queue.pop("since")) < until
    assert datetime.fromisoformat(queue.pop("until")) == until
    assert queue == {"what": "queue", "name": "mail", "by": "anna", "reason": "down"}
    assert job_type == {
        "what": "job type",
        "name": "tests.sample.say",
        "by": "",
        "reason": "its concurrency is 0",
        "since": None,
        "until": None,
    }
