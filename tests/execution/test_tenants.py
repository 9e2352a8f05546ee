"""With a schema for each tenant, no job writes into the schema of another tenant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django_tenants.utils import schema_context

from django_jobqueue import job
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from tests.docs.pages import examples
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived

SCHEMAS: Final = ("acme", "bolt")
WRITE: Final = "INSERT INTO note (text) VALUES (%s)"


@pytest.fixture
def tenants(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], dict[str, list[str]]]]:
    """Threads that begin from now on connect by django-tenants. Returns what is in the
    schemas."""
    database = connections.settings["default"]
    with connection.cursor() as cursor:
        for schema in SCHEMAS:
            cursor.execute(f"CREATE SCHEMA {schema}")
        for schema in (*SCHEMAS, "public"):
            cursor.execute(f"CREATE TABLE {schema}.note (text text)")
    monkeypatch.setitem(database, "ENGINE", "django_tenants.postgresql_backend")
    monkeypatch.setitem(database, "SCHEMA", "public")

    def notes() -> dict[str, list[str]]:
        found = {}
        with connection.cursor() as cursor:
            for schema in (*SCHEMAS, "public"):
                cursor.execute(f"SELECT text FROM {schema}.note ORDER BY text")
                found[schema] = [text for (text,) in cursor.fetchall()]
        return found

    yield notes
    with connection.cursor() as cursor:
        for schema in SCHEMAS:
            cursor.execute(f"DROP SCHEMA {schema} CASCADE")
        cursor.execute("DROP TABLE public.note")


def _write(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(WRITE, [text])


@job
def write(text: str, schema: str) -> None:
    """As it should be done."""
    with schema_context(schema):
        _write(text)


@job
def write_and_stay(text: str, schema: str) -> None:
    """Trusts what the connection says of itself, and leaves it so."""
    tenant: Any = connection
    if tenant.schema_name != schema:
        tenant.set_schema(schema)
    _write(text)


@job
def only_stay(schema: str) -> None:
    """Sets a tenant, and needs no statement."""
    tenant: Any = connection
    tenant.set_schema(schema)


@job
def write_anywhere(text: str) -> None:
    """Knows no tenants: what it writes is shared."""
    _write(text)


@job
async def awrite_and_stay(text: str, schema: str) -> None:
    await sync_to_async(write_and_stay.function)(text, schema)


@job
async def awrite_anywhere(text: str) -> None:
    await sync_to_async(_write)(text)


@pytest.mark.parametrize("is_cached", [False, True], ids=["each time", "cached"])
def test_a_job_finds_no_tenant_of_another_job(
    tenants: Callable[[], dict[str, list[str]]],
    make_worker: Callable[..., HandDriven],
    settings: Any,
    is_cached: bool,
) -> None:
    settings.TENANT_LIMIT_SET_CALLS = is_cached
    worker = make_worker(threads=1, async_slots=1)

    def run(handler: Any, *arguments: str) -> None:
        handler.enqueue(*arguments)
        worker.work()

    expected: dict[str, list[str]] = {"acme": [], "bolt": [], "public": []}
    for round in "123":
        for schema in SCHEMAS:
            for leave in (write, write_and_stay, awrite_and_stay):
                text = f"{round} {leave.name}"
                run(leave, text, schema)
                expected[schema].append(text)
            run(only_stay, schema)
            for shared in (write_anywhere, awrite_anywhere):
                text = f"{round} {schema} {shared.name}"
                run(shared, text)
                expected["public"].append(text)
    assert tenants() == {schema: sorted(texts) for schema, texts in expected.items()}
    assert {job.status for job in archived()} == {"succeeded"}


TENANT: Final = {"CAPTURE": ["tenant"]}


@job
def note(text: str) -> None:
    """Needs no word about tenants."""
    _write(text)


@job
async def anote(text: str) -> None:
    await sync_to_async(_write)(text)


def test_a_handler_runs_in_the_tenant_of_its_enqueue(
    tenants: Callable[[], dict[str, list[str]]],
    make_worker: Callable[..., HandDriven],
    settings: Any,
) -> None:
    settings.JOBQUEUE = TENANT
    worker = make_worker(threads=2, async_slots=4)
    made = {
        schema: [
            handler.using(metadata={"tenant": schema}).enqueue(f"{handler.name} {n}")
            for handler in (note, anote)
            for n in range(3)
        ]
        for schema in SCHEMAS
    }
    made["public"] = [note.enqueue("shared")]
    gone = note.using(metadata={"tenant": "gone"}).enqueue("nowhere")
    worker.work()
    assert tenants() == {
        schema: sorted(one.data["text"] for one in jobs)
        for schema, jobs in made.items()
    }
    (failed,) = archived(status="failed")
    assert (failed.id, failed.attempts) == (gone.id, 1)
    assert failed.error_message == "The tenant 'gone' has no schema."


def test_the_guide_does_what_it_says(
    tenants: Callable[[], dict[str, list[str]]],
    make_worker: Callable[..., HandDriven],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a thread of its own, whose connections are those of tenants."""
    page = ModuleType("accounts.jobs")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    shared, *blocks = (one.text for one in examples("docs/guides/tenants.md"))
    names: dict[str, Any] = {}
    exec(shared, names)
    assert "django_jobqueue" in names["SHARED_APPS"]
    settings.JOBQUEUE = names["JOBQUEUE"]
    every = SimpleNamespace(
        objects=SimpleNamespace(
            exclude=lambda **_: [SimpleNamespace(schema_name=s) for s in SCHEMAS]
        )
    )
    monkeypatch.setattr("django_tenants.utils.get_tenant_model", lambda: every)

    def enqueue() -> None:
        for block in blocks:
            exec(block, page.__dict__)
        page.count_notes_of_all.enqueue()
        connections.close_all()

    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO acme.note VALUES ('one')")
    try:
        with ThreadPoolExecutor(1) as other:
            other.submit(enqueue).result()
        worker = make_worker(threads=1, async_slots=0)
        worker.work()
        worker.work()
    finally:
        schedules.remove("accounts.count_notes_of_all")
        for name in ("accounts.count_notes", "accounts.count_notes_of_all"):
            registry.remove(name)
    found = archived(job_type_id="accounts.count_notes")
    assert [(one.metadata["tenant"], one.result) for one in found] == [
        ("acme", 1),  # in the guide's own block
        ("acme", 1),
        ("bolt", 0),
    ]
