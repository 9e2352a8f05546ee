"""``jobqueue doctor``: each check finds what it looks for, and is quiet otherwise."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import Error
from django.core.management.base import CommandError
from django.db import connection, connections, transaction
from django.utils import timezone

from django_jobqueue.contrib.http import examinations
from django_jobqueue.contrib.http.models import Token
from django_jobqueue.contrib.remote import examinations as endpoint_checks
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.registry import registry
from django_jobqueue.management.jobqueue import doctor
from django_jobqueue.models import Host, JobType, Rollup, Worker
from django_jobqueue.processes import identity
from django_jobqueue.stats import diagnosis, host_checks, server_checks, stop_timeout
from django_jobqueue.stats.findings import Finding, Level
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import server_facts
from django_jobqueue.store.reading.server_facts import (
    PreparedTransaction,
    ServerFacts,
    Slot,
    TableFacts,
)
from tests.admin import scene
from tests.commands.conftest import jobqueue, refusal
from tests.store.rows import ADD, ago, make
from tests.support.commands import ROOT

pytestmark = pytest.mark.django_db

PAGE = ROOT / "docs" / "reference" / "commands.md"


def findings() -> dict[str, tuple[Level, str, str]]:
    return by_id(diagnosis.diagnose())


def by_id(found: Iterator[Finding]) -> dict[str, tuple[Level, str, str]]:
    return {one.id: (one.level, one.text, one.advice) for one in found}


def levels() -> dict[str, str]:
    return {id: level for id, (level, _, _) in findings().items()}


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
    read = server_facts.server_facts

    def changed(db: Any) -> ServerFacts:
        return read(db)._replace(**facts)

    monkeypatch.setattr(server_facts, "server_facts", changed)


# The server.

TABLE = TableFacts("jobqueue_queuedjob", 8 << 20, 10, 0, False, True)
SERVER: list[tuple[str, str, dict[str, Any]]] = [
    ("server-version", "problem", {"version_number": 130_004}),
    ("server-writable", "problem", {"is_replica": True}),
    ("server-writable", "problem", {"is_read_only": True}),
    ("server-encoding", "problem", {"encoding": "SQL_ASCII"}),
    ("connections", "problem", {"connections": 96, "connections_allowed": 97}),
    ("clock", "note", {"time": 7.0}),
    ("durability", "note", {"commits_wait": False}),
    ("durability", "problem", {"fsync": False}),
    ("statement-timeout", "note", {"statement_timeout": 2_000}),
    ("idle-timeout", "note", {"idle_timeout": 2_000}),
    ("autovacuum", "problem", {"vacuums": False}),
    ("xid-age", "problem", {"xid_age": 1_900_000_000}),
    ("lock-timeout", "note", {"lock_timeout": 500}),
    ("transaction-timeout", "note", {"transaction_timeout": 2_000}),
    ("idle-session-timeout", "note", {"idle_session_timeout": 2_000}),
    ("monitoring-rights", "note", {"sees_sessions": False}),
]
CHECKS = (
    server_checks.server,
    server_checks.durability,
    server_checks.session,
    server_checks.timeouts,
    server_checks.monitoring,
    lambda facts: server_checks.clock(facts.time),
    lambda facts: server_checks.vacuum(facts, [TABLE]),
)


def of_server(facts: ServerFacts) -> dict[str, str]:
    return {one.id: str(one.level) for check in CHECKS for one in check(facts)}


def test_each_check_of_the_server_finds_what_it_looks_for_and_no_other_does() -> None:
    facts = server_facts.server_facts(DjangoDatabase())._replace(time=0.0)
    good = of_server(facts)
    assert good == {**dict.fromkeys((id for id, *_ in SERVER), "ok"), "dead-rows": "ok"}
    for id, level, changed in SERVER:
        assert of_server(facts._replace(**changed)) == {**good, id: level}


def test_every_check_of_the_server_and_its_tables_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_tables = {"dead-rows": "note", "autovacuum": "problem", "privileges": "problem"}
    expected = {id: level for id, level, _ in SERVER} | of_tables
    before = levels()
    assert {before[id] for id in expected} == {"ok"}
    for _, _, changed in SERVER:
        change(monkeypatch, **{**changed, "vacuums": True})
    bad = TABLE._replace(dead_rows=900_000, is_unvacuumed=True, is_writable=False)
    monkeypatch.setattr(server_facts, "table_facts", lambda db: [bad])
    found = findings()
    assert {id: found[id][0] for id in expected} == expected
    assert all(bad.name in found[id][1] for id in of_tables)


def test_a_slot_that_nobody_reads_and_a_missing_migration_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots = [Slot("old", 2 << 30), Slot("new", 5)]
    monkeypatch.setattr(server_facts, "unread_slots", lambda db: slots)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'jobqueue'")
    found = list(diagnosis.diagnose())
    assert [one.level for one in found if one.id == "replication-slots"] == [
        *("problem", "note")
    ]
    level, _, advice = by_id(iter(found))["migrations"]
    assert level == "problem"
    assert "Run manage.py migrate" in advice
    assert "workers" not in by_id(iter(found))  # without tables nothing else is


def test_a_prepared_transaction_that_nobody_ends_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for age, level in ((10.0, "ok"), (600.0, "note"), (7_200.0, "problem")):
        left = [PreparedTransaction("pay-7", age)]
        monkeypatch.setattr(server_facts, "prepared_transactions", lambda db: left)  # noqa: B023
        (found,) = server_checks.prepared(DjangoDatabase())
        assert found.level == level
        assert ("ROLLBACK PREPARED 'pay-7'" in found.advice) is (level != "ok")


# What is there.


def execute(statement: str) -> Callable[[], object]:
    def run() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return run


def killed_move() -> None:
    """One to another database, which still holds a job."""
    mover = scene.worker("move to b", state="moving", lease_until=ago(60))
    make(ADD, status="running", worker_id=mover, started_at=ago(60))


def unserved() -> None:
    """A job waits in a queue that the only worker does not serve."""
    Worker.objects.update(queues=["default"])
    scene.queued(queue="night")


COLUMN = "ALTER TABLE jobqueue_queuedjob DROP COLUMN enqueued_by CASCADE"
INDEX = "DROP INDEX jobqueue_b_newest"
# As an interrupted CREATE INDEX CONCURRENTLY leaves it.
INVALID = """UPDATE pg_index SET indisvalid = false
              WHERE indexrelid = 'jobqueue_b_newest'::regclass"""
PROBLEMS: list[tuple[str, Callable[[], object]]] = [
    ("schema", execute(COLUMN)),
    ("schema", execute(INDEX)),
    ("invalid-indexes", execute(INVALID)),
    ("workers", lambda: Worker.objects.all().delete()),
    ("hosts", lambda: scene.host("c:9", error="no module shop")),
    ("moves", killed_move),
    ("queue-not-served", unserved),
    ("connections-needed", lambda: scene.host("c:9", processes=900)),
]
NOTES: list[tuple[str, Callable[[], object]]] = [
    ("workers-listening", lambda: Worker.objects.update(listening=False)),
    ("releases", lambda: scene.worker("b:1", release="r8")),
    ("handlers-without-job-type", lambda: JobType.objects.filter(name=ADD).delete()),
    ("job-types-without-handler", lambda: JobType.objects.create(name="shop.removed")),
]


@pytest.mark.dear
def test_each_check_of_what_is_there_finds_what_it_looks_for() -> None:
    before = levels()
    for level, cases in (("problem", PROBLEMS), ("note", NOTES)):
        for id, spoil in cases:
            with transaction.atomic():
                spoil()
                assert (before.get(id, "ok"), levels()[id]) == ("ok", level)
                transaction.set_rollback(True)


def test_tokens_that_expire_soon_or_just_have_are_found_if_they_must_be_replaced() -> (
    None
):
    now, days = timezone.now(), timedelta(days=1)
    cases: list[tuple[str, dict[str, Any]]] = [
        ("note", {"expires_at": 3 * days, "last_used_at": -days}),
        ("problem", {"expires_at": -3 * days, "last_used_at": -4 * days}),
        ("ok", {"expires_at": None}),
        ("ok", {"expires_at": 90 * days}),
        ("ok", {"expires_at": 3 * days, "revoked_at": 0 * days}),
        ("ok", {"expires_at": -3 * days}),  # nobody used it
        ("ok", {"expires_at": -90 * days, "last_used_at": -91 * days}),
    ]
    for level, columns in cases:
        moments = {name: at if at is None else now + at for name, at in columns.items()}
        Token.objects.all().delete()
        Token.objects.create(name="billing", **moments)
        (found,) = examinations.api_tokens()
        assert found.level == level, columns
    assert findings()["tokens"] == ("ok", "No token expires soon.", "")


def test_a_disk_that_retention_will_fill_is_found(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.JOBQUEUE = {**settings.JOBQUEUE, "RETENTION": {"succeeded": 604_800}}
    bucket = timezone.now() - timedelta(hours=2)
    Rollup.objects.create(
        bucket=bucket, job_type="shop.mail", queue="default", succeeded=1_000_000
    )  # at 440 bytes, a week of them has 2.9 GiB
    db, now = DjangoDatabase(), timezone.now()
    facts = server_facts.server_facts(db)
    facts = facts._replace(folder="/var/lib/postgresql/18/main", is_local=True)
    for gigabytes, level in ((900, "ok"), (4, "note"), (1, "problem")):
        usage = shutil.disk_usage("/")._replace(free=gigabytes << 30)
        monkeypatch.setattr(host_checks.shutil, "disk_usage", lambda folder: usage)  # noqa: B023
        (found,) = host_checks.disk(db, facts, [TABLE], now)
        assert found.level == level
        assert "2,9" in found.text
    change(monkeypatch, is_local=False)
    level, text, _ = findings()["disk"]
    assert level == "ok"
    assert text.endswith("the server's disk cannot be seen from here.")


# What stops hosts.


@pytest.fixture
def unit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """A host of this machine runs in a unit, of which systemd says this."""
    scene.host(f"{identity.host()}:4711")
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "cgroup").write_text("0::/system.slice/jobs.service\n")
    program = tmp_path / "systemctl"
    program.touch(0o755)
    monkeypatch.setattr(stop_timeout, "PROC", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return lambda properties: bool(
        program.write_text(f"#!/bin/sh\nprintf '{properties}'\n")
    )  # type: ignore[return-value]


def test_a_unit_that_kills_hosts_too_early_is_found(
    unit: Callable[[str], None],
) -> None:
    hosts = list(Host.objects.all())
    for properties in (
        r"TimeoutStopUSec=1min 30s\nNotifyAccess=none\n",
        r"TimeoutStopUSec=infinity\nNotifyAccess=none\n",
        r"TimeoutStopUSec=20s\nNotifyAccess=main\n",  # it asks systemd for more time
        "",
    ):
        unit(properties)
        assert [one.level for one in host_checks.grace(hosts)] == ["ok"]
    unit(r"TimeoutStopUSec=20s\nNotifyAccess=none\n")
    assert findings()["grace"] == (
        "problem",
        "systemd's jobs.service kills a host 20.0 s after asking it to stop; with "
        "GRACE a stop takes up to 40.0 s.",
        "Set TimeoutStopSec to 40 s, or a shorter GRACE.",
    )


def test_a_container_that_may_be_killed_too_early_is_found(
    settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(stop_timeout, "CONTAINER", tmp_path)
    (found,) = host_checks.grace(())
    assert (found.level, "stop_grace_period" in found.advice) == ("note", True)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    (found,) = host_checks.grace(())
    assert "terminationGracePeriodSeconds" in found.advice
    settings.JOBQUEUE = {**settings.JOBQUEUE, "GRACE": 20}
    assert [one.level for one in host_checks.grace(())] == ["ok"]


# The HTTP API, and endpoints.


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
    assert [one.level for one in examinations.http_transport()] == [level]


SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def configure(settings: Any, **entries: dict[str, Any]) -> None:
    made = {
        name: {"url": "https://shipping.internal", "secrets": [SECRET], **entry}
        for name, entry in entries.items()
    }
    settings.JOBQUEUE = {**settings.JOBQUEUE, "ENDPOINTS": made}


def test_jobs_that_are_sent_in_the_clear_are_found(settings: Any) -> None:
    safe = ("https://a.internal", "http://localhost:1", "http://127.0.0.2/v1")
    for url in (*safe, "http://[::1]:8000"):
        configure(settings, shipping={"url": url})
        assert by_id(endpoint_checks.settings())["endpoints-transport"][0] == "ok"
    for url in ("http://10.0.0.1", "http://shipping.internal"):
        configure(settings, shipping={"url": url})
        level, text, _ = by_id(endpoint_checks.settings())["endpoints-transport"]
        assert (level, "shipping." in text, url in text) == ("note", True, False)


def test_requests_that_are_not_signed_are_found(settings: Any) -> None:
    configure(settings, shipping={})
    assert findings()["endpoints-unsigned"][0] == "ok"
    configure(settings, shipping={}, mail={"secrets": []})
    found = by_id(endpoint_checks.settings())["endpoints-unsigned"]
    assert found[:2] == ("note", "Requests are not signed for mail.")


def test_jobs_of_an_endpoint_that_is_not_in_the_settings_are_found(
    settings: Any,
) -> None:
    configure(settings, shipping={})
    id = scene.worker("mail", state="endpoint")
    assert findings()["endpoints-missing"][0] == "ok"  # it has no job
    scene.queued(worker_id=id, status="running", attempts=1, started_at=timezone.now())
    level, text, _advice = by_id(endpoint_checks.rows())["endpoints-missing"]
    assert level == "note"
    assert text.startswith("Jobs (1) were handed over to mail, which is not in ")
    configure(settings, mail={})
    assert by_id(endpoint_checks.rows())["endpoints-missing"][0] == "ok"


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
    found = by_id(endpoint_checks.rows())["endpoints-answers"]
    assert found[0] == level
    if level != "ok":
        assert found[1].startswith(
            "The last answer of shipping was no success: 503, 2 m ago, seen by web-1:7"
        )
        assert (f"{failed} of {answered} failed" in found[1]) is bool(answered)
    configure(settings, mail={})
    assert by_id(endpoint_checks.rows())["endpoints-answers"][0] == "ok"


# The whole.


@pytest.mark.django_db(transaction=True)
def test_a_server_that_is_down_is_a_problem_and_the_rest_is_examined() -> None:
    wrapper = connections["default"]
    wrapper.close()
    port = wrapper.settings_dict["PORT"]
    wrapper.settings_dict["PORT"] = "1"
    try:
        found = findings()
        assert set(found) == {"database", "grace"}
        assert found["database"][0] == "problem"
        assert "does not answer: connection" in found["database"][1]
        assert refusal("doctor") == "1 problem found."
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
        "Run this as the workers' role.",
    )
    assert {id for id, one in found.items() if "cannot be examined" in one[1]} == {
        *("attention", "connections-needed", "disk", "grace", "handlers", "hosts"),
        *("asleep", "migrations", "moves", "tokens", "endpoints-answers"),
    }


def test_the_command_prints_what_is_to_be_done_and_ends_with_1_for_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor.checks, "run_checks", lambda **options: [])
    said = jobqueue("doctor")
    assert "problem" not in said.out
    assert said.out.endswith(" checks passed.\n")
    every = jobqueue("doctor --all").out
    assert "ok       system-checks: The system checks find nothing.\n" in every
    assert "ok       server-version: PostgreSQL " in every
    found = jobqueue("doctor --format json").json
    assert {tuple(one) for one in found} == {("id", "level", "text", "advice")}
    described = PAGE.read_text().partition("### doctor\n")[2].partition("### show")[0]
    named = set(re.findall(r"`([a-z-]+)`", described))
    assert {one["id"] for one in found} - named == {"system-checks"}

    wrong = Error("No such alias.", hint="Did you mean 'jobs'?", id="jobqueue.E005")
    foreign = Error("Not ours.", id="shop.E001")

    def run_checks(tags: list[str], **options: Any) -> list[Error]:
        return [wrong, foreign] if "jobqueue" in tags else []

    monkeypatch.setattr(doctor.checks, "run_checks", run_checks)
    with pytest.raises(CommandError, match=r"^1 problem found\.$") as refused:
        jobqueue("doctor --format json")
    assert refused.value.returncode == 1


def test_a_folder_that_a_stop_cannot_write_to_is_found(
    settings: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "dumps"
    settings.JOBQUEUE = {**settings.JOBQUEUE, "DUMP_DIR": str(folder)}
    assert "jobqueue.W008" in jobqueue("doctor").out
    folder.mkdir()
    assert "jobqueue.W008" not in jobqueue("doctor").out
