"""Each ready-made role, and each address: who may do what, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.utils.html import conditional_escape

from django_jobqueue.contrib.console.models import SavedView
from django_jobqueue.models import BulkOperation, JobType, QueuedJob
from tests.admin.conftest import LogIn
from tests.admin.crowd import code, crowd, told
from tests.admin.endpoints import (
    ALL,
    FIRST,
    OWN,
    RIGHTS,
    Endpoint,
    Keys,
    keys_of,
    models_with_pages,
    operation,
    said,
    sums,
    writes,
)
from tests.admin.pages import Page
from tests.admin.scene import Scene
from tests.support.undone import undone

ROLES = list(RIGHTS)
LOGGER = "django_jobqueue.operations"
Log = pytest.LogCaptureFixture
STATES = {"start": "draft", "resume": "paused", "undo": "done"}
CHANGING = 10  # addresses of a part, at least, when all forms say what they can
# What is only done to rows that are as code and hosts write them.
DECLARED = ("host/scale", "schedule/run", "schedule/reset", "schedule/<id>/edit")
# Drafts change nothing yet, and views only their owner sees.
DRAFTS = dict.fromkeys(
    ("jobqueue_bulkoperation", "jobqueue_privacy_erasure"), "state <> 'draft'"
)
OF_USERS = {"jobqueue_console_savedview", "jobqueue_overview"}
PARTS = 3


def test_every_address_that_does_something_is_in_the_table() -> None:
    assert set(FIRST) <= {endpoint.name for endpoint in ALL}
    shows = ("history/", "change/", "<path:object_id>/", "find/", "<uuid:id>/")
    shows += ("export.csv/", "export.jsonl/", "search/", "matrix/", "releases/")
    shows += ("views/", "names/")
    assert [
        str(one)
        for one in ALL
        if not (one.does or one.is_list or one.is_nobodys)
        and not one.route.endswith(shows)
    ] == []


def effects() -> dict[str, str | None]:
    """A sum of each table."""
    return sums({one._meta.db_table for one in models_with_pages()} - OF_USERS, DRAFTS)


def untold(log: Log, operated: list[Any], who: str, *, is_step: bool) -> str:
    """What is missing of the records of a change; empty if nothing is."""
    records = [record for record in log.records if record.name == LOGGER]
    entries = list(LogEntry.objects.select_related("user"))
    if is_step:  # of a bulk operation, which its start told
        return "" if records else "no log record"
    by = {entry.user.get_username() for entry in entries}
    if by != {who} or not all(entry.get_change_message() for entry in entries):
        return f"the history says {entries}"
    if {record.by for record in records} != {who}:
        return f"the log says {log.text}"
    if not all(record.verb and record.count >= 0 for record in records):
        return f"the log does not say what and how many: {log.text}"
    if len(operated) != len(records):
        return f"the signal says {operated}"
    return ""


# A part of them at a time: tests elsewhere wait for transactions of all databases.
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_first_role_that_may_does_it_and_it_is_told_without_secrets(
    log_in: LogIn, caplog: Log, operated: list[Any], part: int
) -> None:
    """Whatever can be done, in the history, in the log and in a signal; texts stay text
    in its answer. A POST to a page or a form that only shows changes nothing."""
    caplog.set_level("CRITICAL", logger="django.request")
    caplog.set_level("DEBUG", logger="django_jobqueue")
    rows = crowd(is_large=False)
    keys = {**rows.code, "bulkoperation": operation()}
    schedule, host = rows.scene.schedules["overridden"], rows.scene.hosts["asked"]
    declared = {**keys, "schedule": schedule, "host": host}
    SavedView.objects.update(owner=ROLES[0])
    clients = {role: log_in(*rights, name=role) for role, rights in RIGHTS.items()}
    JobType.objects.update(priority_override=5)
    made = QueuedJob.objects.filter(pk=keys["queuedjob"])
    made.update(bulk_operation_id=keys["bulkoperation"])
    changing: list[str] = []
    found: dict[str, list[str]] = {}
    state = ""
    asked = [one for one in ALL if not one.is_list or one.does]
    for endpoint in sorted(asked[part::PARTS], key=state_for):
        role = FIRST.get(endpoint.name, ROLES[-1])
        caplog.clear()
        operated.clear()
        clients[role].cookies.pop("messages", None)
        if state != state_for(endpoint):
            state = state_for(endpoint)
            BulkOperation.objects.update(state=state)
            before = effects()
        chosen = declared if endpoint.name in DECLARED else keys
        with undone(), writes() as written:
            response = post(clients[role], endpoint, chosen)
            wrong = wrong_with(response, endpoint)
            if endpoint.name not in OWN and written and effects() != before:
                changing.append(endpoint.name)
                step = endpoint.route.endswith("/step/")
                wrong += filter(None, [untold(caplog, operated, role, is_step=step)])
            texts = [entry.change_message for entry in LogEntry.objects.all()]
        texts += [str(one.__dict__) + one.getMessage() for one in caplog.records]
        texts += map(str, operated)
        if wrong := [*wrong, *(secret for text in texts for secret in told(text))]:
            found[endpoint.name] = wrong
    assert "\n".join(f"{k}: {v}" for k, v in found.items()) == ""
    assert len(changing) >= CHANGING
    assert set(changing) <= set(FIRST)


def state_for(endpoint: Endpoint) -> str:
    """What a bulk operation has to be for this to be done."""
    return STATES.get(endpoint.route.rstrip("/").rpartition("/")[2], "running")


def post(client: Client, endpoint: Endpoint, keys: Keys) -> Any:
    return client.post(endpoint.address(keys), said(endpoint, keys))


def wrong_with(response: Any, endpoint: Endpoint) -> list[str]:
    """What is wrong with the answer to a POST, or with the messages that it leaves."""
    may = (200, 302) if endpoint.does else (200, 302, 403, 405)
    wrong = []
    if response.status_code not in may:
        wrong.append(f"is answered with {response.status_code}")
    text = response.getvalue().decode()
    if "html" in response.headers["Content-Type"]:
        left = get_messages(response.wsgi_request)
        text += "".join(conditional_escape(message.message) for message in left)
        wrong += code(Page(text))
    return wrong if endpoint.route.endswith("reveal/") else [*wrong, *told(text)]


def test_the_role_before_the_first_that_may_does_nothing(
    log_in: LogIn, scene: Scene, caplog: Log
) -> None:
    caplog.set_level("CRITICAL", logger="django.request")
    keys = keys_of(scene)
    clients = {role: log_in(*RIGHTS[role], name=role) for role in ROLES}
    before = effects()
    answers = {}
    for endpoint in filter(lambda one: one.does, ALL):
        if number := ROLES.index(FIRST[endpoint.name]):
            form = {"_save": "Save"} if endpoint.is_page else said(endpoint, keys)
            client = clients[ROLES[number - 1]]
            status = client.post(endpoint.address(keys), form).status_code
            answers[endpoint.name] = status
    assert {k: v for k, v in answers.items() if v not in (403, 405)} == {}
    assert effects() == before
