"""``jobqueue doctor``: each check finds what it looks for, and is quiet otherwise."""

from __future__ import annotations

import os
import re
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import Error
from django.core.management.base import CommandError
from django.db import connection, connections
from django.utils import timezone

from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue import doctor
from django_jobqueue.models import JobType, Rollup, Schedule, Token, Worker
from django_jobqueue.processes import identity
from django_jobqueue.stats import diagnosis, host_checks, stop_timeout
from django_jobqueue.stats.findings import Level
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.server_facts import (
    PreparedTransaction,
    ServerFacts,
    Slot,
    TableFacts,
)
from tests.admin import scene
from tests.commands.conftest import jobqueue
from tests.store.rows import ADD, ago, make

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
    names = set(JobType.objects.values_list("name", flat=True))
    declared = [one for one in registry if one.name in names]
    monkeypatch.setattr(diagnosis, "registry", declared)
    monkeypatch.setattr(stop_timeout, "CONTAINER", Path("/no-such-file"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


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
        ("lock-timeout", "note", {"lock_timeout": 500}),
        ("transaction-timeout", "note", {"transaction_timeout": 2_000}),
        ("monitoring-rights", "note", {"sees_sessions": False}),
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
        ("moves", "problem", lambda: killed_move()),
        ("queue-not-served", "problem", lambda: unserved()),
        ("handlers-without-job-type", "note", lambda: forget_a_job_type()),
        ("connections-needed", "problem", lambda: scene.host("c:9", processes=900)),
        ("tokens", "note", lambda: expiring(left=timedelta(days=3))),
        ("tokens", "problem", lambda: expiring(left=-timedelta(days=3))),
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


def forget_a_job_type() -> None:
    """No worker, migrate or enqueue has declared it yet."""
    JobType.objects.filter(name="tests.sample.add").delete()


def killed_move() -> None:
    """One to another database, which still holds a job."""
    mover = scene.worker("move to b", state="moving", lease_until=ago(60))
    make(ADD, status="running", worker_id=mover, started_at=ago(60))


def expiring(left: timedelta) -> None:
    """A token that its program used an hour before now or its end."""
    moment = timezone.now() + left
    used = min(moment, timezone.now()) - timedelta(hours=1)
    Token.objects.create(name="billing", expires_at=moment, last_used_at=used)


@pytest.mark.parametrize(
    "columns",
    [
        {"expires_at": None},
        {"expires_at": timedelta(days=90)},
        {"expires_at": timedelta(days=3), "revoked_at": timedelta(0)},
        {"expires_at": -timedelta(days=3)},  # nobody used it
        {"expires_at": -timedelta(days=90), "last_used_at": -timedelta(days=91)},
    ],
)
def test_a_token_that_nobody_has_to_replace_is_not_named(
    columns: dict[str, Any],
) -> None:
    now = timezone.now()
    moments = {name: None if at is None else now + at for name, at in columns.items()}
    Token.objects.create(name="billing", **moments)
    assert findings()["tokens"] == ("ok", "No token expires soon.", "")


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


@pytest.mark.parametrize(
    ("age", "level"), [(10.0, "ok"), (600.0, "note"), (7_200.0, "problem")]
)
def test_a_prepared_transaction_that_nobody_ends_is_found(
    age: float, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [PreparedTransaction("pay-7", age)]
    monkeypatch.setattr(server_facts, "prepared_transactions", lambda db: left)
    found = findings()["prepared-transactions"]
    assert found[0] == level
    assert ("ROLLBACK PREPARED 'pay-7'" in found[2]) is (level != "ok")


GIGABYTE = 1 << 30


@pytest.mark.parametrize(
    ("free", "level"),
    [(900 * GIGABYTE, "ok"), (4 * GIGABYTE, "note"), (GIGABYTE, "problem")],
)
def test_a_disk_that_retention_will_fill_is_found(
    free: int, level: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": {"succeeded": 604_800}}
    bucket = timezone.now() - timedelta(hours=2)
    Rollup.objects.create(
        bucket=bucket, job_type="shop.mail", queue="default", succeeded=1_000_000
    )  # at 440 bytes, a week of them has 2.9 GiB
    change(monkeypatch, folder="/var/lib/postgresql/18/main", is_local=True)
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr(host_checks.shutil, "disk_usage", lambda folder: usage)
    assert findings()["disk"][0] == level
    assert "2,9" in findings()["disk"][1]
    change(monkeypatch, is_local=False)
    found = findings()["disk"]
    assert found[0] == "ok"
    assert found[1].endswith("the server's disk cannot be seen from here.")


def answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, properties: str) -> None:
    """A host of this machine runs in a unit, of which systemd says this."""
    scene.host(f"{identity.host()}:4711")
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "cgroup").write_text("0::/system.slice/jobs.service\n")
    program = tmp_path / "systemctl"
    program.write_text(f"#!/bin/sh\nprintf '{properties}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(stop_timeout, "PROC", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("properties", "level"),
    [
        (r"TimeoutStopUSec=20s\nNotifyAccess=none\n", "problem"),
        (r"TimeoutStopUSec=1min 30s\nNotifyAccess=none\n", "ok"),
        (r"TimeoutStopUSec=infinity\nNotifyAccess=none\n", "ok"),
        # The host asks systemd for more time.
        (r"TimeoutStopUSec=20s\nNotifyAccess=main\n", "ok"),
        ("", "ok"),
    ],
)
def test_a_unit_that_kills_hosts_too_early_is_found(
    properties: str, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer(monkeypatch, tmp_path, properties)
    found = findings()["grace"]
    assert found[0] == level
    if level == "problem":
        assert found[1] == (
            "systemd's jobs.service kills a host 20.0 s after asking it to stop; with "
            "GRACE a stop takes up to 40.0 s."
        )
        assert found[2] == "Set TimeoutStopSec to 40 s, or a shorter GRACE."


def test_a_container_that_may_be_killed_too_early_is_found(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stop_timeout, "CONTAINER", tmp_path)
    assert findings()["grace"][0] == "note"
    assert "stop_grace_period" in findings()["grace"][2]
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert "terminationGracePeriodSeconds" in findings()["grace"][2]
    settings.JOBQUEUE = {**settings.JOBQUEUE, "GRACE": 20}
    assert findings()["grace"][0] == "ok"


@pytest.mark.parametrize(
    ("urls", "tls", "debug", "level"),
    [
        ("tests.urls", True, False, "ok"),
        ("tests.urls", False, False, "problem"),
        ("tests.urls", False, True, "note"),
        ("tests.admin.ops_urls", False, False, "ok"),
        ("tests.no_such_urls", True, False, "problem"),
        (None, False, False, "ok"),
    ],
)
def test_an_http_api_that_takes_tokens_in_the_clear_is_found(
    urls: str | None, tls: bool, debug: bool, level: str, settings: Any
) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "HTTP_REQUIRE_TLS": tls}
    settings.ROOT_URLCONF = urls
    settings.DEBUG = debug
    assert findings()["http-transport"][0] == level


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def configure(settings: Any, **entries: dict[str, Any]) -> None:
    """These endpoints are in the settings."""
    made = {
        name: {"url": "https://shipping.internal", "secrets": [SECRET], **entry}
        for name, entry in entries.items()
    }
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": made}


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("https://shipping.internal", "ok"),
        ("http://localhost:8000", "ok"),
        ("http://127.0.0.2/v1", "ok"),
        ("http://[::1]:8000", "ok"),
        ("http://10.0.0.1", "note"),
        ("http://shipping.internal", "note"),
    ],
)
def test_jobs_that_are_sent_in_the_clear_are_found(
    url: str, level: str, settings: Any
) -> None:
    configure(settings, shipping={"url": url})
    found = findings()["endpoints-transport"]
    assert found[0] == level
    assert ("shipping." in found[1]) is (level == "note")
    assert url not in found[1]


def test_requests_that_are_not_signed_are_found(settings: Any) -> None:
    configure(settings, shipping={})
    assert findings()["endpoints-unsigned"][0] == "ok"
    configure(settings, shipping={}, mail={"secrets": []})
    found = findings()["endpoints-unsigned"]
    assert found[:2] == ("note", "Requests are not signed for mail.")


def test_jobs_of_an_endpoint_that_is_not_in_the_settings_are_found(
    settings: Any,
) -> None:
    configure(settings, shipping={})
    id = scene.worker("mail", state="endpoint")
    assert findings()["endpoints-missing"][0] == "ok"  # it has no job
    scene.queued(worker_id=id, status="running", attempts=1, started_at=timezone.now())
    level, text, _advice = findings()["endpoints-missing"]
    assert level == "note"
    assert text.startswith("Jobs (1) were handed over to mail, which is not in ")
    configure(settings, mail={})
    assert findings()["endpoints-missing"][0] == "ok"


@pytest.mark.parametrize(
    ("status", "failed", "answered", "level"),
    [
        (204, 0, 9, "ok"),
        (204, 8, 9, "ok"),
        (503, 1, 9, "note"),
        (503, 2, 2, "note"),
        (503, 3, 3, "problem"),
        (503, 0, 0, "note"),  # that was long ago
    ],
)
def test_endpoints_that_fail_are_found(
    status: int, failed: int, answered: int, level: str, settings: Any
) -> None:
    configure(settings, shipping={})
    scene.endpoint("shipping", status, failed=failed, answered=answered)
    found = findings()["endpoints-answers"]
    assert found[0] == level
    if level != "ok":
        assert found[1].startswith(
            "The last answer of shipping was no success: 503, 2 m ago, seen by web-1:7"
        )
        assert (f"{failed} of {answered} failed" in found[1]) is bool(answered)
    configure(settings, mail={})
    assert findings()["endpoints-answers"][0] == "ok"


def test_a_folder_that_a_stop_cannot_write_to_is_found(
    settings: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "dumps"
    settings.JOBQUEUE = {**settings.JOBQUEUE, "DUMP_DIR": str(folder)}
    assert "jobqueue.W008" in jobqueue("doctor").out
    folder.mkdir()
    assert "jobqueue.W008" not in jobqueue("doctor").out


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_down_is_a_problem_and_the_rest_is_examined() -> None:
    wrapper = connections["default"]
    wrapper.close()
    port = wrapper.settings_dict["PORT"]
    wrapper.settings_dict["PORT"] = "1"
    try:
        found = findings()
        assert set(found) == {
            *("http-transport", "endpoints-transport", "endpoints-unsigned"),
            *("database", "grace"),
        }
        assert found["database"][0] == "problem"
        assert "does not answer: connection" in found["database"][1]
        with pytest.raises(CommandError) as refused:
            jobqueue("doctor")
        assert str(refused.value) == "1 problem found."
    finally:
        wrapper.close()
        wrapper.settings_dict["PORT"] = port


@pytest.mark.django_db(transaction=True)
def test_a_role_with_few_rights_is_told_what_it_cannot_see() -> None:
    """One that may connect, and nothing else."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE jobqueue_stranger")
        try:
            cursor.execute("SET ROLE jobqueue_stranger")
            found = findings()
        finally:
            cursor.execute("RESET ROLE")
            cursor.execute("DROP ROLE jobqueue_stranger")
    assert found["privileges"][0] == "problem"
    assert found["schema"][0] == "ok"
    assert found["monitoring-rights"][0] == "note"
    assert found["attention"] == (
        "note",
        "This cannot be examined: " + found["attention"][1].partition(": ")[2],
        "Run this as the role of the workers.",
    )
    assert {id for id, one in found.items() if "cannot be examined" in one[1]} == {
        *("attention", "connections-needed", "disk", "grace", "handlers", "hosts"),
        *("migrations", "moves", "tokens", "endpoints-answers"),
    }


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
