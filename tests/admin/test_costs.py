"""What a page costs: as many statements however much there is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from django_jobqueue.contrib.alerts.models import Alert, AlertDelivery
from django_jobqueue.models import JobType
from django_jobqueue.operations.audit_log import record
from tests.admin.pages import get, list_of, page_of
from tests.admin.scene import (
    ADD,
    FAIL,
    Scene,
    archived,
    endpoint,
    insert,
    queued,
    worker,
)
from tests.admin.test_failures import failure, hours
from tests.admin.test_job_types import happened
from tests.admin.test_workers import configure, running


def queries(client: Client, address: str) -> int:
    """How many a page takes."""
    with CaptureQueriesContext(connection) as captured:
        get(client, address)
    return len(captured)


def test_pages_cost_the_same_however_much_there_is(
    anna: Client, scene: Scene, settings: Any
) -> None:
    configure(settings, "mail")
    id = worker("web-9:1")
    sender = endpoint("shipping", 204, failed=1, answered=2)

    def grow(number: int) -> None:
        name, group = f"shop.type-{number}", scene.group
        JobType.objects.create(name=name, priority_override=1)
        queued(FAIL, priority=number), queued(queue=f"q-{number}", priority=number)
        archived(FAIL, "failed", fingerprint=group), archived(worker="web-9:1")
        happened(timedelta(minutes=number), FAIL, succeeded=3)
        more = {"host": f"web-{number}", "release": f"r{number}"}
        knows = {"job_types": [FAIL, name], "queues": ["default", f"q-{number}"]}
        running(worker(f"web-8:{number}", **more, **knows), 3)
        running(endpoint(f"shipping-{number}", 503, failed=1, answered=2), 3)
        running(id, 2, FAIL), running(sender, 3)
        failed = queued(FAIL, attempts=1)
        failure(group, failed, error_message=f"card {number}", release=f"r{number}")
        hours(group, **{f"h{number}": (1, 1)})
        alert = insert(Alert, {"condition": "backlog", "subject": name, "text": "-"})
        insert(AlertDelivery, {"alert_id": alert, "event": "fired", "channel": "mail"})
        for by in range(5):
            record("pause", f"user{by}", by + 1, {"job_types": [ADD]})

    addresses = {
        page_of("jobtype", FAIL): 22,
        page_of("queue", "default"): 20,
        page_of("worker", id): 14,
        page_of("worker", sender): 14,
        page_of("failuregroup", scene.group): 22,
        **{list_of(model): 22 for model in ("jobtype", "queue", "worker")},
        **{list_of(model): 14 for model in ("alert", "auditentry")},
    }
    grow(0)
    before = {address: queries(anna, address) for address in addresses}
    grow(1), grow(2)
    after = {address: queries(anna, address) for address in addresses}
    # What is asked only once may be among the first.
    most = {one: min(before[one], addresses[one]) for one in addresses}
    assert {one: n for one, n in after.items() if n > most[one]} == {}
