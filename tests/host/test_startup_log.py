"""What workers say when they start, also before their tables are there."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.db import connection, connections
from django.test import override_settings

from django_jobqueue import logs, signals
from django_jobqueue.domain import registry
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host import startup_log
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.host.startup_log import log_start
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity, job_types
from django_jobqueue.store.connection import OwnConnection
from tests.support.tables import differing

PLAN = WorkerConfig(threads=4, async_slots=1)
SECRET = "hunter2"


@pytest.fixture
def said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    # private: other tests of this process have left threads
    monkeypatch.setattr(startup_log, "_warn_of_threads", lambda: None)
    caplog.set_level(logging.INFO, "django_jobqueue")
    return caplog


def test_the_line_names_no_password(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"HOST": "db-1", "PORT": 5433, "PASSWORD": SECRET}.items():
        monkeypatch.setitem(connection.settings_dict, name, value)
    log_start(PLAN, None)
    (record,) = said.records
    name = connection.settings_dict["NAME"]
    text = record.getMessage()
    assert " starts an embedded worker with 4 threads and 1 async slots; " in text
    assert "queues: every; " in text
    assert f"database 'default', which is {name!r} at db-1:5433; " in text
    assert text.endswith("; release tests")
    assert SECRET not in text


def test_the_line_names_the_server_of_libpq(said: pytest.LogCaptureFixture) -> None:
    host, by_environment = {"HOST": "db-1"}, {"PGHOST": "db-2", "PGPORT": "5434"}
    service = {"NAME": "", "OPTIONS": {"service": "shop"}}
    options = {"OPTIONS": {"host": "db-3", "port": "5435"}}
    rows: list[tuple[dict[str, Any], dict[str, str], str]] = [
        ({**host, "PORT": "5433"}, {}, "which is 'jobs' at db-1:5433"),
        (host, {}, "which is 'jobs' at db-1:5432"),
        ({"HOST": "/run/pg"}, {}, "which is 'jobs' at /run/pg:5432"),
        ({}, {}, "which is 'jobs' at the local socket"),
        ({"PORT": "5433"}, {}, "which is 'jobs' at the local socket of port 5433"),
        ({}, by_environment, "which is 'jobs' at db-2:5434"),
        ({}, {"PGHOSTADDR": "10.0.0.2"}, "which is 'jobs' at 10.0.0.2:5432"),
        (host, by_environment, "which is 'jobs' at db-1:5434"),
        (options, {"PGHOST": "db-2"}, "which is 'jobs' at db-3:5435"),
        (service, {"PGHOST": "db-2"}, "by the service 'shop'"),
    ]

    def named(settings: dict[str, Any], environment: dict[str, str]) -> str:
        given = {"NAME": "jobs", "HOST": "", "PORT": "", "OPTIONS": {}, **settings}
        said.clear()
        with pytest.MonkeyPatch.context() as patch:
            for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"):
                patch.delenv(name, raising=False)
            for name, value in environment.items():
                patch.setenv(name, value)
            # A new connection, as a worker makes one, reads them here.
            for name, value in given.items():
                patch.setitem(connections.settings["default"], name, value)
            log_start(PLAN, None)
        return said.records[0].getMessage()

    def fits(text: str, wanted: str) -> bool:
        return f"; database 'default', {wanted}; " in text

    assert differing(rows, named, fits) == []


def test_without_handlers_it_warns(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "registry", registry.Registry())
    log_start(PLAN, 1)
    first, warning = said.records
    assert " 1 worker process with " in first.getMessage()
    assert "; 0 handlers; " in first.getMessage()
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        "There are no handlers, so no job can run. Declare functions with @job in the "
        "module jobs of an app in INSTALLED_APPS"
    )


@override_settings(JOBQUEUE={"MODULES": ["jobs", "job", "cron"]})
def test_it_warns_of_modules_that_no_app_has(said: pytest.LogCaptureFixture) -> None:
    log_start(PLAN, 1)
    assert [record.getMessage() for record in said.records[1:]] == [
        "JOBQUEUE['MODULES'] names 'job', which no installed app has",
        "JOBQUEUE['MODULES'] names 'cron', which no installed app has",
    ]


def test_it_warns_of_a_misspelled_queue(said: pytest.LogCaptureFixture) -> None:
    log_start(WorkerConfig(queues=("default", "defualt", "xyzzy")), 1)
    assert [record.getMessage() for record in said.records[1:]] == [
        "No handler names the queue 'defualt'. Did you mean 'default'?"
    ]
    assert said.records[1].levelno == logging.WARNING


def test_unlogged_successes_have_no_receiver(
    said: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signals.attempt_succeeded, "receivers", [])
    logs.connect_successes()
    assert signals.attempt_succeeded.receivers == []


@pytest.mark.django_db(transaction=True)
def test_a_start_that_fails_waits_longer_each_time_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def declare(connection: OwnConnection, *args: Any) -> None:
        connection.run("SELECT FROM jobqueue_not_migrated")

    monkeypatch.setattr(job_types, "declare", declare)
    maintenance = HostMaintenance(ProcessTable(1), WorkerConfig())
    caplog.set_level(logging.WARNING, "django_jobqueue")
    waits = []
    for _ in range(8):
        with pytest.raises(StoreUnavailable) as caught:
            maintenance.get_ready()
        waits.append(caught.value.retry_in)
    assert max(waits[:2]) < min(waits[6:])
    assert len(caplog.records) == 1
    assert "run manage.py migrate" in caplog.text


@pytest.mark.django_db(transaction=True)
def test_a_start_without_tables_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        database_identity, "WRITTEN", "SELECT FROM jobqueue_not_migrated"
    )
    maintenance = HostMaintenance(ProcessTable(1), WorkerConfig())
    caplog.set_level(logging.WARNING, "django_jobqueue")
    for _ in range(4):
        with pytest.raises(StoreUnavailable):
            maintenance.get_ready()
    assert len(caplog.records) == 1
