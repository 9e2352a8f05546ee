"""How much work waits in a queue."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import Rollup, Worker
from django_jobqueue.stats.queue_load import QueueLoad, queue_load
from django_jobqueue.store.connection import DjangoDatabase
from tests.sample import jobs
from tests.store.rows import ADD, FAIL, ago, make, make_many

pytestmark = pytest.mark.django_db
ASYNC = jobs.awrite.name


def worker(**columns: Any) -> None:
    """A living worker with four threads and ten async slots."""
    values: dict[str, Any] = {
        "name": "web-1:1",
        "host": "web-1",
        "pid": 1,
        "threads": 4,
        "async_slots": 10,
        "lease_until": timezone.now() + timedelta(minutes=5),
    }
    Worker.objects.create(**{**values, **columns})


def ran(job_type: str, count: int, seconds: float, **columns: Any) -> None:
    """So many attempts of a minute ago, which took so long each."""
    values = {"bucket": timezone.now() - timedelta(minutes=1), "queue": "mail"}
    ms = int(count * seconds * 1_000)
    columns = {"succeeded": count, "run_ms": ms, **values, **columns}
    Rollup.objects.create(job_type=job_type, **columns)


def load() -> QueueLoad:
    return queue_load(DjangoDatabase(), "mail")


def test_the_backlog_is_what_the_slots_take_for_what_is_ready() -> None:
    make(ADD, queue="other")
    make(ADD, queue="mail", run_after=ago(-60))
    assert load() == QueueLoad(0, 0.0, 0.0)
    make_many(8, ADD, queue="mail", run_after=ago(90))
    make_many(2, FAIL, queue="mail")
    ran(ADD, 10, 3.0)
    ran(ADD, 10, 5.0, release="b", succeeded=0, failed=6, retried=4)
    ran(ADD, 10, 100.0, queue="other")
    ran(ADD, 10, 100.0, bucket=timezone.now() - timedelta(hours=2))
    found = load()
    assert found.ready == 10
    assert 90 <= found.oldest_seconds < 120
    assert found.backlog_seconds == 8 * 4.0 + 2 * 1.0  # as one slot would take

    worker()
    worker(queues=["mail", "sms"])
    worker(queues=["sms"])
    worker(state="draining")
    worker(lease_until=ago(1))
    assert load().backlog_seconds == 34 / 8


def test_jobs_of_each_kind_have_slots_of_their_own() -> None:
    worker()
    make_many(4, ADD, queue="mail")
    make_many(100, ASYNC, queue="mail")
    assert load().backlog_seconds == 10.0


def test_what_is_paused_is_left_out() -> None:
    make_many(3, ADD, queue="mail", run_after=ago(90))
    make_many(2, FAIL, queue="mail", run_after=ago(30))
    operations.pause([ADD])
    found = load()
    assert found.ready == 2
    assert 30 <= found.oldest_seconds < 60
    operations.pause(["mail"], queues=True)
    assert load() == QueueLoad(0, 0.0, 0.0)
