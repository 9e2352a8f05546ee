"""Lists of jobs as files."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import connection
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from django_jobqueue.admin.jobs import export
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.text.redaction import MASK
from tests.admin.conftest import VIEWS, LogIn
from tests.admin.pages import get, list_of
from tests.admin.scene import ADD, FAIL, LEAK, SECRET, Scene, archived, queued

Row = dict[str, Any]


def sent(client: Client, model: str, form: str, **query: Any) -> str:
    response = client.get(f"{list_of(model)}export.{form}/", query)
    assert isinstance(response, StreamingHttpResponse), response
    return b"".join(response.streaming_content).decode()  # type: ignore[arg-type]


def jsonl(client: Client, model: str, **query: Any) -> list[Row]:
    lines = sent(client, model, "jsonl", **query).splitlines()
    return [json.loads(line) for line in lines]


def table(client: Client, model: str, **query: Any) -> list[Row]:
    """The lines of CSV, by the names of the columns."""
    text = sent(client, model, "csv", **query)
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_every_job_of_the_list_is_in_the_file_with_every_column(
    anna: Client, scene: Scene
) -> None:
    models: list[Any] = [QueuedJob, ArchivedJob]
    for model in models:
        name = str(model._meta.model_name)
        rows = jsonl(anna, name)
        ids = [str(id) for id in model.objects.values_list("pk", flat=True)]
        assert sorted(row["id"] for row in rows) == sorted(ids)
        columns = {field.column for field in model._meta.concrete_fields}
        assert all(row.keys() == columns for row in rows)
        cells = table(anna, name)
        assert [row["id"] for row in cells] == [row["id"] for row in rows]
        assert set(cells[0]) == columns
    # A list links to the file of its filters.
    page = get(anna, list_of("archivedjob"), status="failed", q=f"type:{FAIL}")
    links = [url for url in page.links if "export." in url]
    assert len(links) == 2
    for link in links:
        response: Any = anna.get(link)
        text = b"".join(response.streaming_content).decode()
        assert FAIL in text
        assert ADD not in text


def test_chunks_lose_and_repeat_nothing_and_cost_more_only_by_their_number(
    anna: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    for number in range(7):
        status = "failed" if number % 3 == 0 else "succeeded"
        finished_at = now - timedelta(seconds=number // 2)
        archived(ADD, status, data={"n": number % 2}, finished_at=finished_at)
    jobs = ArchivedJob.objects.order_by("-finished_at", "-id")
    queries: list[Row] = [{}, {"q": "data.n:1"}, {"status": "failed"}]
    for query, chosen in zip(
        queries,
        (jobs, jobs.filter(data__n=1), jobs.filter(status="failed")),
        strict=True,
    ):
        ids = [str(id) for id in chosen.values_list("pk", flat=True)]
        for chunk in (1, 2, 3, 7, 100):
            monkeypatch.setattr(export, "CHUNK", chunk)
            assert [row["id"] for row in jsonl(anna, "archivedjob", **query)] == ids
    # A filter that is not clear sends nothing.
    assert jsonl(anna, "archivedjob", q="nonsense:1") == []

    def asked() -> int:
        with CaptureQueriesContext(connection) as captured:
            jsonl(anna, "archivedjob")
        return len(captured)

    first = asked()
    for _ in range(20):
        archived()
    assert asked() == first


def test_data_are_for_who_may_see_them_and_secrets_for_nobody(
    anna: Client, log_in: LogIn
) -> None:
    archived(
        LEAK,
        "failed",
        data={"token": SECRET, "order": 7},
        result={"again": SECRET},
        metadata={"password": "s3cr3t"},
        error_message=f"refused {SECRET}",
    )
    for form in ("csv", "jsonl"):
        text = sent(anna, "archivedjob", form)
        assert SECRET not in text
        assert "s3cr3t" not in text
        assert MASK in text
    (row,) = jsonl(anna, "archivedjob")
    assert row["data"] == {"token": MASK, "order": 7}
    (row,) = jsonl(log_in(*VIEWS), "archivedjob")
    assert row.keys().isdisjoint(export.DATA)
    assert SECRET not in row["error_message"]
    client = log_in("view_queuedjob", name="carl")
    get(client, f"{list_of('archivedjob')}export.csv/", code=403)
    assert jsonl(client, "queuedjob") == []


def test_no_spreadsheet_computes_a_cell(anna: Client) -> None:
    texts = ["=1+1", "+1", "-1", "@cmd", "\tx", "\rx", "=HYPERLINK()"]
    for text in texts:
        archived(ADD, "failed", error_message=text, worker=text, data={}, priority=-5)
    found = table(anna, "archivedjob")
    for name in ("error_message", "worker"):
        assert [row[name] for row in found] == [f"'{text}" for text in reversed(texts)]
    assert {(row["priority"], row["result"]) for row in found} == {("-5", "")}


def test_an_export_is_told_with_its_number(
    anna: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "django_jobqueue.operations")
    queued()
    queued()
    jsonl(anna, "queuedjob")
    (line,) = [r for r in caplog.records if r.name == "django_jobqueue.operations"]
    assert line.getMessage() == "export: 2 by anna {'jobs': 'queued'}"


@pytest.mark.django_db(transaction=True)
def test_an_asynchronous_server_sends_it_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "CHUNK", 2)
    for _ in range(5):
        archived()
    user = get_user_model().objects.create_superuser("anna", "", "x")
    client = AsyncClient()
    client.force_login(user)

    async def parts() -> list[bytes]:
        response: Any = await client.get(f"{list_of('archivedjob')}export.jsonl/")
        assert response.is_async
        return [part async for part in response.streaming_content]

    counts = [part.count(b"\n") for part in async_to_sync(parts)()]
    assert counts == [2, 2, 1]
