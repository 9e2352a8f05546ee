"""``jobqueue status --format json``, whose keys are promised to programs."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import JobType
from django_jobqueue.store import rollup
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rollup import Count
from tests.commands.conftest import Manage, jobqueue, make_archived
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db


def figures() -> dict[str, Any]:
    """What a program reads."""
    found: dict[str, Any] = jobqueue("status", "--format", "json").json
    return found


def test_the_keys_are_these() -> None:
    found = figures()
    assert list(found) == [
        "time",
        "depth_cap",
        "window",
        "notices",
        "queues",
        "workers",
        "standby",
        "throughput",
        "failures",
        "paused",
    ]
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


def test_a_queue_has_counts_and_seconds() -> None:
    jobs.add.enqueue(1)
    jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    (queue,) = figures()["queues"]
    oldest = queue.pop("oldest")
    assert 0 <= oldest < 60
    assert queue == {
        "queue": "default",
        "job_type": "tests.sample.add",
        "ready": 1,
        "later": 1,
        "retrying": 0,
        "running": 0,
    }


@pytest.mark.django_db(transaction=True)
def test_a_worker_has_its_row_s_figures_in_seconds_and_bytes(
    make_worker: Callable[..., HandDriven],
) -> None:
    driven = make_worker(queues=("mail",), threads=3, async_slots=7).worker
    (worker,) = figures()["workers"]
    assert 10 < worker.pop("lease") <= 15
    assert 0 <= worker.pop("age") < 60
    assert worker == {
        "id": driven.id,
        "name": driven.name,
        "state": "running",
        "alive": True,
        "running": 0,
        "threads": 3,
        "async_slots": 7,
        "memory": 0,
        "queues": ["mail"],
        "listening": False,
        "release": "tests",
        "end": "",
        "remote": False,
    }


@pytest.mark.django_db(transaction=True)
def test_a_worker_of_every_queue_has_null(worker: HandDriven) -> None:
    assert [worker["queues"] for worker in figures()["workers"]] == [None]


def test_throughput_has_counts_and_percentiles() -> None:
    count = Count("tests.sample.add", "mail", "r1", 7, 1, 2, 3)
    count.attempt(ran=0.039, waited=0.9)
    rollup.add(DjangoDatabase(), [count, Count("tests.sample.say", "mail", other=1)])
    first, second = figures()["throughput"]
    assert first == {
        "queue": "mail",
        "job_type": "tests.sample.add",
        "succeeded": 7,
        "failed": 1,
        "retried": 2,
        "other": 3,
        "wait_p95": 1.0,
        "run_p50": pytest.approx(0.0398, abs=0.0001),
        "run_p95": pytest.approx(0.0398, abs=0.0001),
    }
    assert (second["wait_p95"], second["run_p50"]) == (None, None)


def test_a_failure_has_its_last_time_and_message() -> None:
    make_archived(2, error_class="shop.Gone", error_message="no\nsuch order")
    (failure,) = figures()["failures"]
    last = datetime.fromisoformat(failure.pop("last"))
    assert timedelta(0) < timezone.now() - last < timedelta(hours=1)
    assert failure == {
        "error_class": "shop.Gone",
        "job_type": "tests.sample.add",
        "count": 2,
        "message": "no\nsuch order",
    }


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


@pytest.mark.django_db(transaction=True)
def test_a_notice_names_the_queue_or_the_type(
    make_worker: Callable[..., HandDriven],
) -> None:
    make_worker(queues=("mail",))
    jobs.add.enqueue(1)
    (notice,) = figures()["notices"]
    assert (notice["code"], notice["queue"]) == ("queue_not_served", "default")


@pytest.mark.django_db(transaction=True)
def test_a_watch_prints_one_line_for_each_look(manage: Manage) -> None:
    process = manage("jobqueue", "status", "--format", "json", "--watch", "0.1")
    assert process.stdout is not None
    times = [json.loads(process.stdout.readline())["time"] for _ in range(3)]
    assert times == sorted(set(times))
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=30)
    assert all(json.loads(line) for line in rest.splitlines())
    assert (process.returncode, err) == (0, "")
