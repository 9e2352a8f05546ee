"""Whatever an operator changes is written down: who did it, what, and how many."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.models import BulkOperation, JobType, QueuedJob
from tests.admin.endpoints import ALL, Endpoint, Keys, everything, keys_of, said
from tests.admin.scene import Scene

# Routes that only show, or refuse everybody.
# The steps of a bulk operation are those of whoever started it.
SHOWING = (
    "<uuid:id>/step/",
    "",
    "add/",
    "find/",
    "find/<uuid:id>/",
    "<path:object_id>/download/",
    "<path:object_id>/history/",
    "<path:object_id>/delete/",
    "<path:object_id>/",
)
NO_FORM = ("archivedjob", "bulkoperation", "queue", "queuedjob", "worker")
FORMS_TO_COME = ("failuregroup", "jobtype")  # these tell nobody yet
UNCHANGED = (*NO_FORM, *FORMS_TO_COME)

# Of a bulk operation with which something can be done.
STATES = {"start": "draft", "resume": "paused", "undo": "done"}
# A bulk operation tells of its jobs. A draft without a count has none yet.
COUNTS = {"start": 0, "step": 2, "undo": 0}

CHANGING = [
    endpoint
    for endpoint in ALL
    if endpoint.route not in SHOWING
    and (
        endpoint.model not in (*NO_FORM, *FORMS_TO_COME)
        or not endpoint.route.endswith("/change/")
    )
]


def make_possible(endpoint: Endpoint, keys: Keys) -> None:
    """Let there be something to be done."""
    JobType.objects.update(priority_override=5)
    verb = endpoint.route.rstrip("/").rpartition("/")[2]
    BulkOperation.objects.update(state=STATES.get(verb, "running"))
    made = QueuedJob.objects.filter(pk=keys["queuedjob"])
    made.update(bulk_operation_id=keys["bulkoperation"])


@pytest.mark.parametrize("endpoint", CHANGING, ids=str)
def test_a_change_is_in_the_history_in_the_log_and_in_a_signal(
    anna: Client,
    scene: Scene,
    endpoint: Endpoint,
    caplog: pytest.LogCaptureFixture,
    operated: list[dict[str, Any]],
) -> None:
    keys = keys_of(scene)
    make_possible(endpoint, keys)
    before = everything()
    caplog.set_level("INFO", logger="django_jobqueue.triage")
    response = anna.post(endpoint.address(keys), said(endpoint, keys))
    assert response.status_code in (200, 302)
    assert everything() != before

    entries = LogEntry.objects.all()
    assert entries
    user = get_user_model().objects.get()
    assert {entry.user_id for entry in entries} == {user.pk}
    assert all(entry.get_change_message() for entry in entries)

    count = COUNTS.get(endpoint.route.rstrip("/").rpartition("/")[2], 1)
    (record,) = (r for r in caplog.records if r.name == "django_jobqueue.triage")
    assert (record.by, record.count) == ("anna", count)
    assert record.verb in record.getMessage()
    assert [told["by"] for told in operated] == ["anna"]
    assert [told["count"] for told in operated] == [count]
