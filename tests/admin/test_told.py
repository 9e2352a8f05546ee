"""Whatever an operator changes is written down: who did it, what, and how many."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from django_jobqueue.models import BulkOperation, JobType, QueuedJob
from tests.admin.endpoints import ALL, Endpoint, Keys, everything, keys_of, said, undone
from tests.admin.scene import Scene

# What its row has to be for something to be done with a bulk operation.
STATES = {"start": "draft", "resume": "paused", "undo": "done"}
MANY = 20  # of the addresses change something when all forms say what they can
LOGGER = "django_jobqueue.operations"
Log = pytest.LogCaptureFixture


def make_possible(endpoint: Endpoint, keys: Keys) -> None:
    """Let there be something to be done."""
    JobType.objects.update(priority_override=5)
    verb = endpoint.route.rstrip("/").rpartition("/")[2]
    BulkOperation.objects.update(state=STATES.get(verb, "running"))
    made = QueuedJob.objects.filter(pk=keys["queuedjob"])
    made.update(bulk_operation_id=keys["bulkoperation"])


def effects() -> dict[str, list[dict[str, Any]]]:
    """All rows but drafts, which change nothing yet, and views that only their owner
    sees."""
    rows = everything()
    del rows["jobqueue.SavedView"]
    for name in ("jobqueue.BulkOperation", "jobqueue.Erasure"):
        rows[name] = [row for row in rows[name] if row["state"] != "draft"]
    return rows


def problem(log: Log, operated: list[dict[str, Any]], steps: bool) -> str:
    """What is missing of the records of a change; empty if nothing is."""
    records = [record for record in log.records if record.name == LOGGER]
    entries = list(LogEntry.objects.select_related("user"))
    who = {entry.user.get_username() for entry in entries}
    if steps:  # of a bulk operation, which its start told
        return "" if records else "no log record"
    if who != {"anna"} or not all(entry.get_change_message() for entry in entries):
        return f"the history says {entries}"
    if {record.by for record in records} != {"anna"}:
        return f"the log says {log.text}"
    if not all(record.verb and record.count >= 0 for record in records):
        return f"the log does not say what and how many: {log.text}"
    if len(operated) != len(records):
        return f"the signal says {operated}"
    return ""


@pytest.mark.timeout(900)  # every address takes a busy machine some minutes
def test_every_change_is_in_the_history_in_the_log_and_in_a_signal(
    anna: Client, scene: Scene, caplog: Log, operated: list[dict[str, Any]]
) -> None:
    caplog.set_level("INFO", logger=LOGGER)
    keys = keys_of(scene)
    changing, untold = [], {}
    for endpoint in ALL:
        caplog.clear()
        operated.clear()
        with undone():
            make_possible(endpoint, keys)
            before = effects()
            anna.post(endpoint.address(keys), said(endpoint, keys))
            if effects() == before:
                continue
            changing.append(endpoint)
            steps = endpoint.route.endswith("/step/")
            if missing := problem(caplog, operated, steps):
                untold[str(endpoint)] = missing
    assert untold == {}
    assert len(changing) > MANY, changing
