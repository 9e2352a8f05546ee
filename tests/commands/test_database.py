"""``jobqueue … --database``: jobs in another database than the setting says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import connection, connections
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.domain.ids import new_ids
from django_jobqueue.management.commands.jobqueue import SUBCOMMANDS
from tests.commands.conftest import jobqueue

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No override of the settings outlives a test."""
    monkeypatch.setattr(conf, "_flags", {})


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Another alias, whose connection is that of this test."""
    connections.settings["elsewhere"] = connections.settings["default"]
    connections["elsewhere"] = connection
    yield
    del connections["elsewhere"]
    del connections.settings["elsewhere"]


def refusal(alias: str) -> str:
    """What the command says when it refuses."""
    with pytest.raises(CommandError) as refused:
        jobqueue("status", "--database", alias)
    return str(refused.value)


def test_the_jobs_of_another_database_are_shown(elsewhere: None) -> None:
    said = jobqueue("status", "--database", "elsewhere")
    assert said.out.startswith("Job queue in database 'elsewhere', ")


def test_afterwards_the_setting_holds_again(elsewhere: None) -> None:
    jobqueue("status", "--database", "elsewhere")
    assert conf.database == "default"
    with pytest.raises(CommandError):
        jobqueue("cancel", "--database", "elsewhere")
    assert conf.database == "default"


def test_an_unknown_database_is_answered_with_the_nearest(elsewhere: None) -> None:
    assert refusal("elsewere") == (
        "--database: there is no database 'elsewere' in DATABASES. Did you mean "
        "'elsewhere'?"
    )


def test_a_database_of_another_kind_is_refused(settings: Any) -> None:
    connections.settings["lite"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    try:
        assert refusal("lite") == (
            "The job queue needs PostgreSQL; the database 'lite' is sqlite."
        )
    finally:
        del connections["lite"]
        del connections.settings["lite"]


# One call of each subcommand that reads jobs.
READS: dict[str, tuple[str, ...]] = {
    "status": (),
    "top": ("--once",),
    "metrics": (),
    "show": ("019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11",),
    "why": ("019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11",),
    "types": (),
    "workers": (),
    "hosts": (),
    "failures": (),
    "alerts": (),
    "replay": ("--status", "failed"),
    "cancel": ("--queue", "default"),
    "run-now": ("--queue", "default"),
    "reschedule": ("--where", "queue:default", "--priority", "1"),
    "fail": ("--queue", "default", "--reason", "no"),
    "release": ("--where", "state:lapsed"),
    "operations": (),
    "dump": (),
    "load": ("/dev/null",),
    "move": ("--to", "default", "--queue", "default"),
    "run": ("019a9f5e-7c3b-7d4e-8a51-0c6f2f7f6a11",),
    "doctor": (),
    "pause": ("tests.sample.add",),
    "resume": ("tests.sample.add",),
    "override": ("tests.sample.add", "--clear"),
    "prune": (),
    "import": ("celery-beat",),
    "schedules": (),
    "schedule": ("nightly",),
    "leases": (),
    "limits": (),
    "personal-data": ("find", "anna@example.com"),
    "token": (),
    "bench": (),
}
ONE_SENTENCE = "The job queue needs PostgreSQL; the database 'lite' is sqlite."


@pytest.fixture
def on_sqlite() -> Iterator[None]:
    """The jobs run at enqueue, and the project's database is SQLite."""
    connections.settings["lite"] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
    }
    with override_settings(JOBQUEUE={"MODE": "immediate", "DATABASE": "lite"}):
        yield
    with suppress(AttributeError):  # where nothing asked for it
        del connections["lite"]
    del connections.settings["lite"]


def test_each_subcommand_that_reads_jobs_is_tried_on_sqlite() -> None:
    assert set(READS) == {n for n, one in SUBCOMMANDS.items() if one.reads_jobs}


@pytest.mark.parametrize("name", READS)
def test_where_there_is_no_postgresql_each_subcommand_says_so(
    name: str, on_sqlite: None
) -> None:
    with pytest.raises(CommandError) as refused:
        jobqueue(name, *READS[name])
    assert str(refused.value) == ONE_SENTENCE


def test_an_enqueue_runs_the_job_there(on_sqlite: None) -> None:
    said = jobqueue(
        "enqueue", "tests.sample.add", "a=1", "--format=json", "--run-after=0"
    )
    assert said.json["status"] == "succeeded"
    assert (
        jobqueue("enqueue", "tests.sample.add", "a=1", "--queue", "defualt").err == ""
    )


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
        verb(new_ids(1)[0])
    assert str(refused.value) == ONE_SENTENCE
