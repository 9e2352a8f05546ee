"""``jobqueue … --database``: jobs in another database than the setting says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, connections
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.ids import new_id
from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
from tests.commands.conftest import jobqueue, refusal

pytestmark = pytest.mark.django_db

JOB = "019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11"
ONE_SENTENCE = "The job queue needs PostgreSQL; the database 'lite' is sqlite."


@contextmanager
def another(alias: str, **changes: str) -> Iterator[None]:
    connections.settings[alias] = {**connections.settings["default"], **changes}
    yield
    if hasattr(connections._connections, alias):  # private: where it was asked for
        del connections[alias]
    del connections.settings[alias]


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Another alias, whose connection is that of this test."""
    with another("elsewhere"):
        connections["elsewhere"] = connection
        yield


@pytest.fixture
def lite() -> Iterator[None]:
    with another("lite", ENGINE="django.db.backends.sqlite3", NAME=":memory:"):
        yield


@pytest.fixture
def on_sqlite(lite: None) -> Iterator[None]:
    """The jobs run at enqueue, and the project's database is SQLite."""
    with override_settings(JOBQUEUE={"MODE": "immediate", "DATABASE": "lite"}):
        yield


def test_the_jobs_of_another_database_are_shown_and_then_the_setting_holds_again(
    elsewhere: None,
) -> None:
    said = jobqueue("status --database elsewhere")
    assert said.out.startswith("Job queue in database 'elsewhere', ")
    assert conf.database == "default"
    refusal("cancel --database elsewhere")
    assert conf.database == "default"


def test_a_database_that_cannot_be_used_is_refused(elsewhere: None, lite: None) -> None:
    assert refusal("status --database elsewere") == (
        "--database: there is no database 'elsewere' in DATABASES. Did you mean "
        "'elsewhere'?"
    )
    assert refusal("status --database lite") == ONE_SENTENCE


# One call of each subcommand that reads jobs.
READS = {
    line.partition(" ")[0]: line
    for line in (
        "status",
        "top --once",
        "metrics",
        f"show {JOB}",
        f"why {JOB}",
        "types",
        "workers",
        "hosts",
        "failures",
        "alerts",
        "replay --status failed",
        "cancel --queue default",
        "run-now --queue default",
        "reschedule --where queue:default --priority 1",
        "fail --queue default --reason no",
        "release --where state:lapsed",
        "operations",
        "dump",
        "load /dev/null",
        "move --to default --queue default",
        f"run {JOB}",
        "doctor",
        "pause tests.sample.add",
        "resume tests.sample.add",
        "override tests.sample.add --clear",
        "prune",
        "import celery-beat",
        "schedules",
        "schedule nightly",
        "leases",
        "limits",
        "personal-data find anna@example.com",
        "token",
        "bench",
        "sleep",
        "wake",
    )
}


def test_where_there_is_no_postgresql_each_subcommand_that_reads_jobs_says_so(
    on_sqlite: None,
) -> None:
    assert set(READS) == {n for n, one in SUBCOMMANDS.items() if one.reads_jobs}
    said = {line: refusal(line) for line in READS.values()}
    assert said == dict.fromkeys(READS.values(), ONE_SENTENCE)


def test_an_enqueue_runs_the_job_there(on_sqlite: None) -> None:
    add = "enqueue tests.sample.add a=1"
    said = jobqueue(f"{add} --format=json --run-after=0")
    assert said.json["status"] == "succeeded"
    assert jobqueue(f"{add} --queue defualt").err == ""


@pytest.mark.parametrize(
    "verb",
    [
        lambda id: operations.cancel([id]),
        lambda id: operations.replay_many([id]),
        lambda id: operations.reschedule([id], run_after=timezone.now()),
        lambda id: operations.pause(["tests.sample.add"]),
        lambda id: operations.override("tests.sample.add", timeout=timedelta(5)),
    ],
)
def test_where_there_is_no_postgresql_each_verb_says_so(
    verb: Callable[[UUID], Any], on_sqlite: None
) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        verb(new_id())
    assert str(refused.value) == ONE_SENTENCE
