"""Checks of the server and its database, by ``manage.py check --database``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_django
from django.core.checks import CheckMessage
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connections
from django.db.backends.postgresql.features import DatabaseFeatures
from django.test import override_settings

from django_jobqueue import checks, operations
from django_jobqueue.checks import check_server
from django_jobqueue.models import DatabaseIdentity
from django_jobqueue.processes import listener
from tests.checks.databases import database
from tests.checks.messages import only


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


def say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a transaction pooler, notifications are swallowed."""
    monkeypatch.setattr(listener, "NOTIFY", "SELECT %(payload)s::text")
    monkeypatch.setattr(listener, "PATIENCE", 0.1)


def test_a_good_server_is_asked_only_by_a_flag_and_not_talked_about(
    tmp_path: Path,
) -> None:
    with database("gone", HOST=str(tmp_path)):
        assert list(check_server(None)) == []
        assert list(check_server(None, databases=["default"])) == []
    with database("lite", ENGINE="django.db.backends.sqlite3", NAME=":memory:"):
        assert asked("lite") == []
    assert asked() == []
    call_command("check", "--database", "default", "--fail-level", "WARNING")


def test_e013_a_database_that_is_not_in_utf8_stops_migrate() -> None:
    settings = connections.settings["default"]
    name = f"{settings['NAME']}_latin1"
    with connections["default"].cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}"')
        cursor.execute(
            f"CREATE DATABASE \"{name}\" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
            " TEMPLATE template0"
        )
    try:
        with database("latin", NAME=name):
            with override_settings(JOBQUEUE={"DATABASE": "latin"}):
                only(asked("latin"), "E013", "is in LATIN1", "ENCODING 'UTF8'")
                with pytest.raises(SystemCheckError, match="E013"):
                    call_command("migrate", database="latin", skip_checks=False)
            connections["latin"].close()
    finally:
        with connections["default"].cursor() as cursor:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_e008_a_server_that_is_too_old_for_us_or_for_django(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = "The server of the job queue is too old: PostgreSQL 99 or later is required"
    with monkeypatch.context() as patch:
        patch.setattr(checks, "OLDEST", 99)
        only(
            asked(), "E008", f"{start} (found {server_version()}).", "Upgrade the serv"
        )
    monkeypatch.setattr(DatabaseFeatures, "minimum_database_version", (99,))
    with database("old"):
        found = re.escape(start) + rf" \(found {server_version()}\.\d+\)\."
        assert re.match(found, only(asked("old"), "E008"))


def test_w002_a_server_that_is_not_there_or_refuses_us(tmp_path: Path) -> None:
    with database("gone", HOST=str(tmp_path), PORT="5432"):
        start = "The database 'gone' cannot be queried: "
        hint = "Until it can be reached, workers wait and enqueues raise."
        only(asked("gone"), "W002", start, str(tmp_path), hint)
    with database("other", NAME="no_such_database"):
        only(asked("other"), "W002", "no_such_database")


def test_w003_a_connection_on_which_nothing_is_heard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say_nothing(monkeypatch)
    said = (
        "LISTEN receives nothing on this connection: it looks like a transaction pooler"
    )
    only(asked(), "W003", said, "JOBQUEUE['LISTEN'] = False")
    for decided in (True, False):
        with override_settings(JOBQUEUE={"LISTEN": decided}):
            assert asked() == []


@pytest.mark.django_db
def test_w021_a_database_in_which_workers_do_nothing() -> None:
    identity = DatabaseIdentity.objects.create(id=1, identity="x", server_version=99)
    start = "This database is a copy: "
    only(asked(), "W021", start, "run manage.py jobqueue wake")
    identity.delete()
    operations.put_to_sleep()
    only(asked(), "W021", "This database was put to sleep")


@pytest.mark.dear
def test_every_check_has_an_id_that_is_tested_here() -> None:
    root = Path(checks.__file__).parent
    files = (*root.glob("*.py"), *root.parent.glob("contrib/*/checks.py"))
    source = "".join(file.read_text() for file in files)
    ids = set(re.findall(r'"jobqueue\.([EW]\d{3})"', source))
    own = Path(__file__).parent
    files = (*own.glob("test_*.py"), *own.parent.glob("contrib/*/test_checks.py"))
    tests = "".join(file.read_text() for file in files)
    names = " ".join(re.findall(r"\ndef (test_[ew]\d{3}_\w*)", tests))
    tested = {id.upper() for id in re.findall(r"_([ew]\d{3})(?=_)", names)}
    assert ids == tested
