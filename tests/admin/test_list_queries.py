"""What lists ask the database: few statements, however many rows there are, and never
what jobs carry."""

from __future__ import annotations

import re
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.admin.lists.change_list import JobChangeList
from tests.admin import scene as rows
from tests.admin.pages import get, list_of, statements
from tests.admin.scene import ADD, FAIL

DATES = {"finished_at__range__gte_0": "2001-01-01"}
ARCHIVE: list[dict[str, str]] = [
    {},
    *({"status": status} for status in ("failed", "succeeded", "expired")),
    {"job_type": ADD},
    {"status": "failed", "job_type": ADD, **DATES},
    {"queue": "mail"},
    {"priority": ">0"},
    {"worker": "web-1:1"},
    {"error": "ValueError"},
    {"replayed": "no"},
    {"fingerprint": str(uuid4())},
    {"q": "ran:>1s type:add"},
    {"q": "data.a:1"},
    {"q": "01a1ff"},
]
QUEUED: list[dict[str, str]] = [
    {},
    *({"state": s} for s in ("ready", "later", "retrying", "running", "lapsed")),
    {"job_type": ADD, "queue": "default"},
    {"error": "ValueError"},
    {"worker": "web-1:1"},
    {"q": "data.a:1"},
    {"q": "01a1ff"},
]
LISTS = [
    *product(["archivedjob"], ARCHIVE),
    *product(["queuedjob"], QUEUED),
]

# Session, user, names of job types, queues, page, its job types, count and its limit,
# replays, saved views. Among queued jobs also: workers and what they handle, failures,
# why not.
MOST = {"archivedjob": 10, "queuedjob": 15}


def made(number: int) -> None:
    """Jobs of several kinds, so that every column has something to look up."""
    worker = rows.worker(f"web-{number}:1")
    for turn in range(number):
        failed = rows.archived(FAIL, "failed", fingerprint=uuid4(), data={"a": 1})
        rows.archived(priority=turn % 3, run_ms=5_000, error_class="ValueError")
        rows.queued(FAIL, replay_of=failed, attempts=1, data={"a": 1})
        rows.queued(
            status="running",
            attempts=1,
            worker_id=worker,
            started_at=timezone.now(),
        )


def asked(client: Client, model: str, query: dict[str, str]) -> list[str]:
    """The statements of the list."""
    with CaptureQueriesContext(connection) as captured:
        get(client, list_of(model), **query)
    return statements(captured)


@pytest.mark.parametrize(("model", "query"), LISTS)
def test_few_statements_however_many_rows(
    anna: Client, model: str, query: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobChangeList, "window", 10_000)
    made(3)
    few = asked(anna, model, query)
    made(40)
    many = asked(anna, model, query)
    assert len(many) <= MOST[model] + ("q" in query or "data" in str(query))
    # A full page is counted, and the window's end is looked for; nothing else is new.
    assert len(many) - len(few) <= 1


@pytest.mark.parametrize(("model", "query"), LISTS)
def test_lists_read_no_data(anna: Client, model: str, query: dict[str, str]) -> None:
    made(3)
    for sql in asked(anna, model, query):
        columns = sql.partition(" FROM ")[0]
        assert not re.search(r'"(data|result|traceback|log_tail|frames)"', columns)


def test_the_box_without_a_meaning_reads_no_job(anna: Client, db: Any) -> None:
    read = asked(anna, "archivedjob", {"q": "id:what is this"})
    assert [sql for sql in read if "jobqueue_archivedjob" in sql] == []


def test_a_list_asks_once_which_indexes_there_are(anna: Client, db: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        get(anna, list_of("archivedjob"), q=f"type:{ADD} data.a:1 data.b:2")
    asked = [sql for sql in statements(captured) if "pg_index" in sql]
    assert len(asked) == len(set(asked)) == 2  # those that were declared, and any
