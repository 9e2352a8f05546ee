"""``jobqueue … --database``: jobs in another database than the setting says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management.base import CommandError
from django.db import connection, connections

from django_jobqueue.conf import conf
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
            "--database: 'lite' is sqlite; the job queue needs PostgreSQL."
        )
    finally:
        del connections["lite"]
        del connections.settings["lite"]
