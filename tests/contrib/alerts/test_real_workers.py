"""A real ``runworkers`` posts to a webhook what happens to its jobs."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from django_jobqueue.contrib.alerts.models import Alert
from django_jobqueue.models import QueuedJob
from tests.contrib.alerts.conftest import SECRET, Receiver
from tests.sample import jobs
from tests.stats import rows
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

ALERTER = "contrib.alerts.alerter"
OFTEN = {f"{ALERTER}.CHECK_EVERY": 0.2, f"{ALERTER}.PAUSE": 0.1}


def types(receiver: Receiver) -> list[str]:
    return sorted(body["type"] for body in receiver.bodies)


def environment(receiver: Receiver) -> dict[str, str]:
    channel = {"to": "webhook", "url": receiver.url, "secrets": [SECRET]}
    return {"JOBQUEUE_ALERTS": json.dumps([channel])}


def test_a_new_failure_reaches_a_webhook_once_and_a_condition_with_its_end(
    runworkers: Callable[..., RunWorkers], receiver: Receiver
) -> None:
    """Two checks until it fires, three until it is resolved."""
    jobs.fail.enqueue()
    jobs.fail.enqueue()
    rows.queued(queue="nobody", run_after=rows.ago(minutes=10))
    flags = ("--processes", "2", "--queues", "default")
    running = runworkers(*flags, constants=OFTEN, **environment(receiver))
    fired = [
        f"jobqueue.{one}.fired" for one in ("backlog", "failure_group", "unserved")
    ]
    eventually(lambda: types(receiver) == fired, within=60, what=lambda: running.output)
    QueuedJob.objects.all().delete()

    def is_over() -> bool:
        Alert.objects.filter(state="firing").update(last_seen=rows.ago(minutes=6))
        over = ["jobqueue.backlog.resolved", "jobqueue.unserved.resolved"]
        return types(receiver) == sorted([*fired, *over])

    eventually(is_over, what=lambda: running.output)
    assert running.stop() == 0
    assert types(receiver).count("jobqueue.failure_group.fired") == 1
    for _path, headers, _body in receiver.requests:
        assert {"Webhook-Id", "Webhook-Signature"} <= {n.title() for n in headers}
