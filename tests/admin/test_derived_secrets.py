"""What comes from a sensitive value is sensitive too: it is planted wherever data of a
job can go, and every surface is looked at by those who may not reveal it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.contrib.console import job_searches, saved_views
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.transfer import dumping
from django_jobqueue.models import JobType, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.rooms import models
from django_jobqueue.search.selection import Selection, Table, Term
from tests.admin.conftest import LogIn
from tests.admin.pages import list_of, page_of
from tests.commands.conftest import jobqueue
from tests.contrib.http.conftest import Program, program
from tests.sample import jobs

__all__ = ["program"]  # a fixture
pytestmark = pytest.mark.django_db

SECRET = "SAL-98765"
HANDLER = jobs.write_keyed  # whose key is that of a limit
NAME = HANDLER.name
MOST = 4  # rows of a model that are looked at


def digest() -> str:
    """The unique key of the job, which whoever has it compares with guesses."""
    key = QueuedJob.objects.exclude(unique_key=None).values_list("unique_key").first()
    assert key is not None
    return str(key[0])


@pytest.fixture
def secrets(
    operated: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> list[str]:
    """Plants the value, and returns what must not be seen; what was logged and sent
    meanwhile is left."""
    caplog.set_level(logging.INFO, "django_jobqueue")
    JobType.objects.filter(name=NAME).update(sensitive=["key"])
    JobType.objects.filter(name=jobs.count_keyed.name).update(sensitive=["code"])
    told = jobs.count_keyed.using(metadata={"code": SECRET})  # a key of the follower
    HANDLER.using(
        unique_key="any", metadata={"key": SECRET, "more": [{"key": SECRET}]}
    ).enqueue("j", SECRET)
    HANDLER.using(on_success=told).enqueue("j", SECRET)
    with connection.cursor() as cursor:  # as of a type that is declared with unique
        cursor.execute(
            "UPDATE jobqueue_queuedjob SET unique_key = jobqueue_unique_key("
            """job_type, '{"by": null, "defaults": {}}', data)"""
            " WHERE unique_key IS NOT NULL"
        )
    operations.override_limit(HANDLER, 3, key=SECRET, by="root")
    operations.override_key_rate(HANDLER, "1/s", key=SECRET, by="root")
    operations.override_key_share(HANDLER, 2, key=SECRET, by="root")
    schedule_operations.create(
        "nightly",
        HANDLER,
        rule="every 1 hours",
        data={"journal": "j", "key": SECRET},
        options={"metadata": {"key": SECRET}, "limit_key": SECRET},
        by="root",
    )
    queued = Selection(
        Table.QUEUED, (Term("type", NAME), Term("data", SECRET, path=("key",)))
    )
    for selection in (queued, Selection(Table.QUEUED, queued.terms[1:])):
        id = bulk.draft("reschedule", selection, priority=1, by="root").id
        bulk.start(id, by="root")
        bulk.draft("cancel", selection, by="root")
    job_searches.start(f"data.key:{SECRET}", {Table.QUEUED: queued}, by="root")
    saved_views.save(
        list="queuedjob",
        name="mine",
        query=f"q=data.key:{SECRET}",
        by="root",
        is_shared=True,
    )
    list(dumping.dump(queued, secrets=True, by="root"))
    return [SECRET, digest()]


def seen(text: str, secrets: list[str]) -> list[str]:
    return [secret for secret in secrets if secret in text]


def with_pages() -> list[Any]:
    """The models whose rows the admin shows."""
    registered = admin.site._registry  # private: the pages there are
    found = [model for model in models() if model in registered]
    return [one for one in found if "view" in one._meta.default_permissions]


def addresses() -> Iterator[str]:
    """The list of every model, and the pages of some rows: of its job type, and of what
    was planted."""
    yield list_of("savedview")
    for model in with_pages():
        name = model._meta.model_name
        yield list_of(name)
        keys = list(model._default_manager.values_list("pk", flat=True))
        ours = [key for key in keys if key == NAME]
        for key in ours or keys[:MOST]:
            yield page_of(name, key)


@pytest.mark.parametrize("rights", [(), ("view_job_data",)], ids=["blind", "seeing"])
def test_no_page_of_the_admin_shows_what_comes_from_a_secret(
    secrets: list[str], log_in: LogIn, rights: tuple[str, ...]
) -> None:
    views = {f"view_{model._meta.model_name}" for model in with_pages()}
    client = log_in(*sorted(views), *rights)
    looked, shown = 0, {}
    for address in addresses():
        answer = client.get(address, follow=True)
        looked += answer.status_code == 200
        if found := seen(answer.content.decode(), secrets):
            shown[address] = found
    assert shown == {}
    assert looked > 25


def test_whoever_may_reveal_sees_the_unique_key(
    secrets: list[str], log_in: LogIn
) -> None:
    job = QueuedJob.objects.exclude(unique_key=None).get()
    who = ("view_queuedjob", "view_job_data", "reveal_job_data")
    page = log_in(*who).get(page_of("queuedjob", job.pk)).content.decode()
    assert seen(page, secrets) == [digest()]


@pytest.mark.parametrize("scopes", [("read",), ("read", "read-data")])
def test_no_answer_over_http_shows_it(
    secrets: list[str], program: Callable[..., Program], scopes: tuple[str, ...]
) -> None:
    client = program(*scopes)
    ids = [f"/jobs/job_{id}" for id in QueuedJob.objects.values_list("pk", flat=True)]
    for path in ("/queued-jobs", "/archived-jobs", "/operations", *ids):
        answer = client.send("GET", path)
        assert answer.status_code == 200, answer.content
        assert seen(answer.content.decode(), secrets) == [], path
    (kind, *_rest) = client.send("GET", "/operations").json()["operations"]
    assert "data.key=••••" in kind["where"]


def test_no_command_shows_it(secrets: list[str]) -> None:
    ids = QueuedJob.objects.filter(job_type=NAME).values_list("pk", flat=True)
    commands = [
        *(f"show {id}" for id in ids),
        *("operations", "schedules", "dump", "types", "status", "limits"),
        f"limits show {NAME}",
        *(f"operations show {row.id}" for row in bulk.newest(10)),
    ]
    for command in commands:
        for form in ("", " --format json") if command != "dump" else ("",):
            said = jobqueue(command + form)
            assert seen(said.out + said.err, secrets) == [], command


def test_no_log_line_and_no_signal_has_it(
    secrets: list[str],
    operated: list[dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    logged = caplog.get_records("setup")
    told = [str(vars(record)) + record.getMessage() for record in logged]
    assert len(told) > 8
    for text in chain(told, map(str, operated)):
        assert seen(text, secrets) == [], text


def test_metrics_do_not_have_it(secrets: list[str], client: Client) -> None:
    said = jobqueue("metrics")
    assert seen(said.out, secrets) == []
