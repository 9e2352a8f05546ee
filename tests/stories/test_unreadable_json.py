"""A value of a row that Python cannot read breaks no page, no command and no claim."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from django_jobqueue import operations
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived

LEVELS: Final = 3_000
VALUES: Final = {
    "digits": "1e5000",
    "a fraction": "1e400 + 0.5",
    "deep": f"'{'[' * LEVELS}{']' * LEVELS}'::jsonb",
}
COLUMNS: Final = {
    "data": "jsonb_build_object('a', {0})",
    "metadata": "jsonb_build_object('m', {0})",
    "tags": "jsonb_build_array({0}, 'x')",
    "followers": "jsonb_build_object('on_success', {0})",
    "backoff": "jsonb_build_array({0})",
}
ELSE: Final = COLUMNS.keys() - {"data"}
REMOTE: Final = "fleet.resize"

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    """Of someone who may do everything."""
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def insert(table: str, job_type: str) -> list[UUID]:
    """Two jobs for each value, by plain SQL: with it in the data, and elsewhere."""
    archive = {"id": "gen_random_uuid()", "queue": "'q'", "priority": "0"}
    archive |= {"status": "'failed'", "attempts": "1", "crashes": "0"}
    archive |= dict.fromkeys(("run_after", "created_at", "finished_at"), "now()")
    archive |= {"result": "jsonb_build_object('r', {0})"}
    every = {**COLUMNS, **(archive if table == "archivedjob" else {})}
    ids = []
    with connection.cursor() as cursor:
        for poison in VALUES.values():
            for columns in ({**every, "data": "'{{}}'"}, every):
                names = [n for n in columns if columns is not every or n not in ELSE]
                values = [columns[name].format(f"({poison})") for name in names]
                cursor.execute(
                    f"INSERT INTO jobqueue_{table} (job_type, {', '.join(names)}) "
                    f"VALUES (%s, {', '.join(values)}) RETURNING id",
                    [job_type],
                )
                ids.append(cursor.fetchone()[0])
    return ids


def pages(ids: list[UUID], table: str) -> Iterator[str]:
    yield f"/admin/jobqueue/{table}/"
    yield f"/admin/jobqueue/{table}/?q=data.a:1"
    for id in ids:
        yield f"/admin/jobqueue/{table}/{id}/change/"


def commands(ids: list[UUID], table: str) -> Iterator[tuple[str, ...]]:
    yield from (("status",), ("failures",), ("dump", "--secrets", "--yes"))
    for id in map(str, ids):
        yield from (("show", id), ("show", id, "--format", "json"), ("why", id))
        if table == "archivedjob":
            yield ("replay", id, "--yes")
        else:
            yield from (("run-now", id), ("reschedule", id, "--priority", "3"))
            yield ("cancel", id, "--yes")


def failing(client: Client, ids: list[UUID], table: str) -> dict[object, object]:
    """Pages, answers and commands that fail because of these jobs."""
    found: dict[object, object] = {}
    for page in pages(ids, table):
        if (code := client.get(page).status_code) != 200:
            found[page] = code
    token = {
        "authorization": f"Bearer {create_token(table, ['read-data', 'read']).text}"
    }
    for path in ("/jobs?per_page=50", *(f"/jobs/x/job_{id}" for id in ids)):
        sent = client.get(f"/jobqueue/v1{path}", secure=True, headers=token)
        if sent.status_code >= 500 or b"Infinity" in sent.content:
            found[path] = sent.status_code
    for words in commands(ids, table):
        out = io.StringIO()
        try:
            call_command("jobqueue", *words, stdout=out, stderr=out)
        except CommandError:
            pass
        except Exception as error:
            found[words] = repr(error)[:200]
        if words[0] == "dump" and "Infinity" in out.getvalue():
            found[words] = "no JSON"
    return found


@pytest.mark.dear
@pytest.mark.parametrize("table", ["queuedjob", "archivedjob"])
def test_pages_answers_and_commands_take_what_python_does_not_read(
    client: Client, table: str
) -> None:
    ids = insert(table, jobs.add.name)
    assert failing(client, ids, table) == {}


@pytest.mark.dear
def test_secrets_beside_what_cannot_be_read_stay_masked(client: Client) -> None:
    deep = f'{{"a": {"[" * LEVELS}{"]" * LEVELS}, "token": "swordfish"}}'
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s),"
            ' (%s, \'{"a": 1e5000, "token": "swordfish"}\')',
            [jobs.add.name, deep, jobs.add.name],
        )
    for job in QueuedJob.objects.all():
        for page in pages([job.pk], "queuedjob"):
            assert b"swordfish" not in client.get(page).content
        out = io.StringIO()
        call_command("jobqueue", "show", str(job.pk), stdout=out)
        assert "swordfish" not in out.getvalue()


def test_such_jobs_end_in_a_worker_and_by_drain_and_their_neighbours_run(
    transactional_db: None, make_worker: Callable[..., HandDriven]
) -> None:
    for run in (make_worker().work, lambda: drain(raise_errors=False)):
        ids = insert("queuedjob", jobs.add.name)
        good = jobs.add.enqueue(1)
        run()
        assert {job.pk for job in archived()} >= {*ids, good.id}
        assert ArchivedJob.objects.get(pk=good.id).status == "succeeded"
        ArchivedJob.objects.all().delete()


def test_a_remote_claim_gives_the_others_and_ends_those(client: Client) -> None:
    operations.declare_job_type(REMOTE, max_attempts=2)
    bad = insert("queuedjob", REMOTE)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, '{\"n\": 7}')",
            [REMOTE],
        )
    text = create_token("node", ["work"]).text

    def post(path: str, body: dict[str, Any]) -> Any:
        sent = client.post(
            f"/jobqueue/v1/workers{path}",
            body,
            content_type="application/json",
            secure=True,
            headers={"authorization": f"Bearer {text}"},
        )
        assert sent.status_code < 300, sent.content
        return sent.json()

    worker = post("", {"name": "n", "job_types": [REMOTE], "slots": 99})["id"]
    claimed = [
        job for _ in range(3) for job in post(f"/{worker}/claim", {"limit": 30})["jobs"]
    ]
    given = {UUID(job["id"].removeprefix("job_")) for job in claimed}
    ended = {job.pk for job in archived(status="failed")}
    assert 7 in [job["data"].get("n") for job in claimed]
    assert (given | ended >= {*bad}, given & ended) == (True, set())
    assert len(ended) == 2, "digits and depth in the data"
