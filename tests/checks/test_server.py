"""Checks of the server, by ``manage.py check --database``: E008, W002, W003."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_django
from django.core.checks import CheckMessage, Error, Warning
from django.core.management import call_command
from django.db import connections
from django.db.backends.postgresql.features import DatabaseFeatures
from django.test import override_settings

from django_jobqueue import checks
from django_jobqueue.checks import check_server
from tests.checks.databases import database
from tests.checks.pooler import Pooler


@pytest.fixture(autouse=True)
def _any_database(
    django_db_setup: None, django_db_blocker: pytest_django.DjangoDbBlocker
) -> Iterator[None]:
    """Databases that come and go may be asked; nothing is written to them."""
    with django_db_blocker.unblock():
        yield


def asked(alias: str = "default") -> list[CheckMessage]:
    return list(check_server(None, databases=[alias]))


def server_version() -> int:
    connections["default"].ensure_connection()
    return connections["default"].pg_version // 10_000


@pytest.fixture
def pooler() -> Iterator[Pooler]:
    settings = connections.settings["default"]
    with Pooler(str(settings["HOST"]), str(settings["PORT"])) as made:
        yield made


def behind(pooler: Pooler) -> Any:
    return database("pooled", HOST="127.0.0.1", PORT=pooler.port)


def test_a_good_server_is_not_talked_about() -> None:
    assert asked() == []
    call_command("check", "--database", "default", "--fail-level", "WARNING")


def test_without_the_database_flag_no_server_is_asked(tmp_path: Path) -> None:
    with database("gone", HOST=str(tmp_path)):
        assert list(check_server(None)) == []
        assert list(check_server(None, databases=["default"])) == []


def test_a_server_that_is_not_postgresql_is_not_asked() -> None:
    with database("lite", ENGINE="django.db.backends.sqlite3", NAME=":memory:"):
        assert asked("lite") == []


def test_e008_a_server_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "OLDEST", 99)
    (message,) = asked()
    assert isinstance(message, Error)
    assert message.id == "jobqueue.E008"
    assert message.msg == (
        "The server of the job queue is too old: PostgreSQL 99 or later is required "
        f"(found {server_version()})."
    )
    assert message.hint == "Upgrade the server."


def test_e008_a_server_that_is_too_old_for_django_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = server_version()
    monkeypatch.setattr(DatabaseFeatures, "minimum_database_version", (99,))
    with database("old"):
        (message,) = asked("old")
    assert message.id == "jobqueue.E008"
    assert re.fullmatch(
        r"The server of the job queue is too old: PostgreSQL 99 or later is required "
        rf"\(found {found}\.\d+\)\.",
        message.msg,
    )


def test_w002_a_server_that_is_not_there(tmp_path: Path) -> None:
    with database("gone", HOST=str(tmp_path), PORT="5432"):
        (message,) = asked("gone")
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W002"
    assert re.match(r"The database 'gone' cannot be asked: .*\S", message.msg)
    assert str(tmp_path) in message.msg
    assert message.hint == (
        "Workers wait for it and enqueues raise until it can be reached."
    )


def test_w002_a_server_that_refuses_us() -> None:
    with database("other", NAME="no_such_database"):
        (message,) = asked("other")
    assert message.id == "jobqueue.W002"
    assert "no_such_database" in message.msg


def test_w003_a_connection_on_which_nothing_is_heard(pooler: Pooler) -> None:
    with behind(pooler):
        (message,) = asked("pooled")
    assert pooler.swallowed == 1
    assert isinstance(message, Warning)
    assert message.id == "jobqueue.W003"
    assert message.msg == (
        "LISTEN hears nothing on this connection: it looks like a transaction pooler, "
        "such as PgBouncer in transaction mode."
    )
    assert message.hint is not None
    assert "JOBQUEUE['LISTEN'] = False" in message.hint


@pytest.mark.parametrize("listen", [True, False])
def test_who_has_decided_about_listen_is_not_told_about_a_pooler(
    pooler: Pooler, listen: bool
) -> None:
    settings = {"DATABASE": "pooled", "LISTEN": listen}
    with behind(pooler), override_settings(JOBQUEUE=settings):
        assert asked("pooled") == []
    assert pooler.swallowed == 0


def test_every_check_has_an_id_that_is_tested_here() -> None:
    root = Path(checks.__file__).parent
    source = "".join(file.read_text() for file in root.glob("*.py"))
    ids = set(re.findall(r'"jobqueue\.([EW]\d{3})"', source))
    tests = "".join(
        file.read_text() for file in Path(__file__).parent.glob("test_*.py")
    )
    names = " ".join(re.findall(r"\ndef (test_[ew]\d{3}_\w*)", tests))
    tested = {id.upper() for id in re.findall(r"_([ew]\d{3})(?=_)", names)}
    assert ids == tested
