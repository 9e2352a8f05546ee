"""``jobqueue doctor``: each check finds what it looks for, and is quiet otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import Error
from django.core.management.base import CommandError
from django.db import connection

from django_jobqueue.management.jobqueue import doctor
from django_jobqueue.models import JobType, Schedule, Worker
from django_jobqueue.stats import diagnosis
from django_jobqueue.stats.diagnosis import Level
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.server_facts import ServerFacts, Slot, TableFacts
from tests.admin import scene
from tests.commands.conftest import jobqueue

pytestmark = pytest.mark.django_db

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"


def findings() -> dict[str, tuple[Level, str, str]]:
    """What the checks say, by their ids."""
    return {one.id: (one.level, one.text, one.advice) for one in diagnosis.diagnose()}


@pytest.fixture(autouse=True)
def healthy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker lives, and the test's server counts as a durable one."""
    Schedule.objects.all().delete()  # of the shop, whose worker is not there
    JobType.objects.exclude(name__startswith="tests.sample.").delete()
    scene.worker(listening=True, release="r7")
    change(monkeypatch, fsync=True, commits_wait=True)


def change(monkeypatch: pytest.MonkeyPatch, **facts: Any) -> None:
    """Let the server say this of itself."""
    read = server_facts.server_facts

    def changed(db: Any) -> ServerFacts:
        return read(db)._replace(**facts)

    monkeypatch.setattr(server_facts, "server_facts", changed)


@pytest.mark.parametrize(
    ("id", "level", "facts"),
    [
        ("server-version", "problem", {"version_number": 130_004}),
        ("server-writable", "problem", {"is_replica": True}),
        ("server-writable", "problem", {"is_read_only": True}),
        ("server-encoding", "problem", {"encoding": "SQL_ASCII"}),
        ("connections", "problem", {"connections": 96, "connections_allowed": 97}),
        ("clock", "note", {"time": 7.0}),
        ("durability", "problem", {"fsync": False}),
        ("durability", "note", {"commits_wait": False}),
        ("statement-timeout", "note", {"statement_timeout": 2_000}),
        ("idle-timeout", "note", {"idle_timeout": 2_000}),
        ("autovacuum", "problem", {"vacuums": False}),
        ("xid-age", "problem", {"xid_age": 1_900_000_000}),
    ],
)
def test_each_check_of_the_server_finds_what_it_looks_for(
    id: str, level: str, facts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings()[id][0] == "ok"
    change(monkeypatch, **facts)
    assert findings()[id][0] == level


TABLE = TableFacts("jobqueue_queuedjob", 8 << 20, 10, 0, False, True)


@pytest.mark.parametrize(
    ("id", "level", "table"),
    [
        ("dead-rows", "note", TABLE._replace(dead_rows=900_000)),
        ("autovacuum", "problem", TABLE._replace(is_unvacuumed=True)),
        ("privileges", "problem", TABLE._replace(is_writable=False)),
    ],
)
def test_each_check_of_the_tables_finds_what_it_looks_for(
    id: str, level: str, table: TableFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings()[id][0] == "ok"
    monkeypatch.setattr(server_facts, "table_facts", lambda db: [table])
    assert findings()[id][:2] == (level, findings()[id][1])
    assert "jobqueue_queuedjob" in findings()[id][1]


def drop_a_column() -> None:
    """Somebody changed the table by hand."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobqueue_queuedjob DROP COLUMN enqueued_by CASCADE")


def drop_an_index() -> None:
    """The same with an index."""
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX jobqueue_b_newest")


def spoil_an_index() -> None:
    """As an interrupted CREATE INDEX CONCURRENTLY leaves it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_index SET indisvalid = false"
            " WHERE indexrelid = 'jobqueue_b_newest'::regclass"
        )


@pytest.mark.parametrize(
    ("id", "level", "spoil"),
    [
        ("schema", "problem", drop_a_column),
        ("schema", "problem", drop_an_index),
        ("invalid-indexes", "problem", spoil_an_index),
        ("workers", "problem", lambda: Worker.objects.all().delete()),
        ("workers-listening", "note", lambda: Worker.objects.update(listening=False)),
        ("releases", "note", lambda: scene.worker("b:1", release="r8")),
        ("hosts", "problem", lambda: scene.host("c:9", error="no module shop")),
        ("queue-not-served", "problem", lambda: unserved()),
        (
            "job-types-without-handler",
            "note",
            lambda: JobType.objects.create(name="shop.removed"),
        ),
    ],
)
def test_each_check_of_what_is_there_finds_what_it_looks_for(
    id: str, level: str, spoil: Any
) -> None:
    assert id not in findings() or findings()[id][0] == "ok"
    spoil()
    assert findings()[id][0] == level


def unserved() -> None:
    """A job waits in a queue that the only worker does not serve."""
    Worker.objects.update(queues=["default"])
    scene.queued(queue="night")


def test_a_slot_that_nobody_reads_and_a_missing_migration_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = [Slot("old", 2 << 30), Slot("new", 5)]
    monkeypatch.setattr(server_facts, "unread_slots", lambda db: slots)
    levels = [f.level for f in diagnosis.diagnose() if f.id == "replication-slots"]
    assert levels == ["problem", "note"]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobqueue'")
    found = findings()
    assert found["migrations"][0] == "problem"
    assert "Run manage.py migrate" in found["migrations"][2]
    assert "workers" not in found  # without tables nothing else is examined


def test_the_command_prints_what_is_to_be_done_and_ends_with_1_for_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor.checks, "run_checks", lambda **options: [])
    said = jobqueue("doctor")
    assert "problem" not in said.out
    assert said.out.endswith(" checks found nothing to say.\n")
    every = jobqueue("doctor", "--all").out
    assert "ok       system-checks: The system checks find nothing.\n" in every
    assert "ok       server-version: PostgreSQL " in every

    wrong = Error("No such alias.", hint="Did you mean 'jobs'?", id="jobqueue.E005")
    foreign = Error("Not ours.", id="shop.E001")

    def run_checks(tags: list[str], **options: Any) -> list[Error]:
        return [wrong, foreign] if "jobqueue" in tags else []

    monkeypatch.setattr(doctor.checks, "run_checks", run_checks)
    with pytest.raises(CommandError) as refused:
        jobqueue("doctor", "--format", "json")
    assert str(refused.value) == "1 problem found."
    assert refused.value.returncode == 1


def test_programs_read_a_list_and_each_check_is_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor.checks, "run_checks", lambda **options: [])
    found = jobqueue("doctor", "--format", "json").json
    assert {tuple(one) for one in found} == {("id", "level", "text", "advice")}
    described = PAGE.read_text().partition("### doctor\n")[2].partition("### show")[0]
    named = set(re.findall(r"`([a-z-]+)`", described))
    assert {one["id"] for one in found} - named == {"system-checks"}
