"""What workers say when they start, and of what each attempt came to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, connections
from django.test import override_settings

from django_jobqueue import logs, signals
from django_jobqueue.domain import registry
from django_jobqueue.host import startup_log
from django_jobqueue.host.startup_log import log_start
from django_jobqueue.processes.worker_config import WorkerConfig
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

PLAN = WorkerConfig(threads=4, async_slots=1)
SECRET = "hunter2"


@pytest.fixture
def said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    # Other tests of this process have left threads.
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


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({"HOST": "db-1", "PORT": "5433"}, {}, "which is 'jobs' at db-1:5433"),
        ({"HOST": "db-1"}, {}, "which is 'jobs' at db-1:5432"),
        ({"HOST": "/run/pg"}, {}, "which is 'jobs' at /run/pg:5432"),
        ({}, {}, "which is 'jobs' at the local socket"),
        ({"PORT": "5433"}, {}, "which is 'jobs' at the local socket of port 5433"),
        (
            {},
            {"PGHOST": "db-2", "PGPORT": "5434"},
            "which is 'jobs' at db-2:5434",
        ),
        ({}, {"PGHOSTADDR": "10.0.0.2"}, "which is 'jobs' at 10.0.0.2:5432"),
        (
            {"HOST": "db-1"},
            {"PGHOST": "db-2", "PGPORT": "5434"},
            "which is 'jobs' at db-1:5434",
        ),
        (
            {"OPTIONS": {"host": "db-3", "port": "5435"}},
            {"PGHOST": "db-2"},
            "which is 'jobs' at db-3:5435",
        ),
        (
            {"NAME": "", "OPTIONS": {"service": "shop"}},
            {"PGHOST": "db-2"},
            "by the service 'shop'",
        ),
    ],
)
def test_the_line_names_the_server_that_libpq_connects_to(
    said: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
    environment: dict[str, str],
    expected: str,
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given = {"NAME": "jobs", "HOST": "", "PORT": "", "OPTIONS": {}, **settings}
    # A new connection, as a worker makes one, reads them here.
    for name, value in given.items():
        monkeypatch.setitem(connections.settings["default"], name, value)
    log_start(PLAN, None)
    assert f"; database 'default', {expected}; " in said.records[0].getMessage()


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
def test_it_warns_of_each_module_that_no_app_has(
    said: pytest.LogCaptureFixture,
) -> None:
    log_start(PLAN, 1)
    assert [record.getMessage() for record in said.records[1:]] == [
        "JOBQUEUE['MODULES'] names 'job', which no installed app has",
        "JOBQUEUE['MODULES'] names 'cron', which no installed app has",
    ]


def test_it_warns_of_a_queue_that_only_looks_like_one_of_a_handler(
    said: pytest.LogCaptureFixture,
) -> None:
    log_start(WorkerConfig(queues=("default", "defualt", "xyzzy")), 1)
    assert [record.getMessage() for record in said.records[1:]] == [
        "No handler names the queue 'defualt'. Did you mean 'default'?"
    ]
    assert said.records[1].levelno == logging.WARNING


@pytest.fixture
def no_receivers() -> Iterator[None]:
    """Nobody listens to successes, neither before the test nor after it."""
    before, signals.attempt_succeeded.receivers = (
        signals.attempt_succeeded.receivers,
        [],
    )
    yield
    signals.attempt_succeeded.receivers = before


@pytest.mark.usefixtures("no_receivers")
def test_nobody_listens_to_successes_that_are_not_logged(
    said: pytest.LogCaptureFixture,
) -> None:
    logs.connect_successes()
    assert signals.attempt_succeeded.receivers == []


@pytest.mark.usefixtures("no_receivers")
def test_a_success_is_a_line_at_debug_with_its_job(
    said: pytest.LogCaptureFixture, worker: HandDriven
) -> None:
    said.set_level(logging.DEBUG, "django_jobqueue.attempt")
    logs.connect_successes()
    logs.connect_successes()  # by another worker of this process
    made = jobs.add.enqueue(1)
    worker.work()
    (record,) = (r for r in said.records if r.name == "django_jobqueue.attempt")
    assert record.levelno == logging.DEBUG
    said_of: Any = record
    assert (said_of.job_id, said_of.attempt) == (str(made.id), 1)
    assert record.getMessage().startswith(
        f"Job {made.id} (tests.sample.add) attempt 1/5 succeeded after 0."
    )
