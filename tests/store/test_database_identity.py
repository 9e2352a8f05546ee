"""A database knows when it was restored from a dump of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.models import DatabaseIdentity
from django_jobqueue.store import database_identity
from django_jobqueue.store.connection import EMPTY, DjangoDatabase
from django_jobqueue.store.database_identity import (
    Sleep,
    check_again,
    check_in,
    read_sleep,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def db() -> DjangoDatabase:
    """A database that no host has used."""
    DatabaseIdentity.objects.all().delete()
    return DjangoDatabase()


def rewrite(change: Callable[[str], str], version: int = 0) -> None:
    """What was written down is that of another database, on an earlier server."""
    row = DatabaseIdentity.objects.get()
    row.identity = change(row.identity)
    row.server_version += version
    row.save()


def other_server(identity: str) -> str:
    return f"7{identity}"


def other_database(identity: str) -> str:
    server, database, table = identity.split("/")
    return f"{server}/{int(database) + 1}/{table}"


def other_tables(identity: str) -> str:
    """As when a dump is loaded into the database that it was taken of."""
    return f"{identity}1"


def test_the_first_host_writes_down_where_it_works(db: DjangoDatabase) -> None:
    assert read_sleep(db) is None
    assert not DatabaseIdentity.objects.exists()
    assert check_in(db) is None
    row = DatabaseIdentity.objects.get()
    assert row.identity == database_identity.identity(db)
    assert row.server_version == connection.cursor().connection.info.server_version // (
        10_000
    )
    assert check_in(db) is None


@pytest.mark.parametrize("change", [other_server, other_database, other_tables])
def test_hosts_sleep_in_a_copy_until_it_is_woken(
    db: DjangoDatabase, change: Callable[[str], str]
) -> None:
    check_in(db)
    rewrite(change)
    before = DatabaseIdentity.objects.values().get()
    assert check_in(db) == check_in(db) == read_sleep(db) == Sleep.COPY
    assert DatabaseIdentity.objects.values().get() == before
    assert database_identity.wake(db) == Sleep.COPY
    assert check_in(db) is None
    assert DatabaseIdentity.objects.get().identity == database_identity.identity(db)


def test_what_looks_like_an_upgrade_may_be_a_copy(db: DjangoDatabase) -> None:
    """pg_upgrade makes another server, and keeps the oids. A dump that is restored by a
    newer server may get the same ones."""
    check_in(db)
    rewrite(other_server, version=-1)
    assert check_in(db) == check_in(db) == read_sleep(db) == Sleep.UPGRADE
    assert database_identity.wake(db) == Sleep.UPGRADE
    assert check_in(db) is None
    rewrite(other_tables, version=-1)
    assert check_in(db) == Sleep.COPY


def test_a_host_that_works_sleeps_while_its_database_is_restored(
    db: DjangoDatabase,
) -> None:
    """The row comes after other tables, whose jobs wait already."""
    check_in(db)
    assert check_again(db) is None
    DatabaseIdentity.objects.all().delete()
    assert check_again(db) == Sleep.UNKNOWN
    assert read_sleep(db) is None  # as in a new database
    database_identity.wake(db)
    assert check_again(db) is None
    rewrite(other_server)
    assert check_again(db) == Sleep.COPY
    database_identity.wake(db)
    assert check_again(db) is None


def test_the_first_host_leaves_alone_what_was_written_meanwhile(
    db: DjangoDatabase,
) -> None:
    class AnotherIsFaster(DjangoDatabase):
        def run(self, statement: str, params: Any = EMPTY) -> None:
            database_identity.put_to_sleep(db)
            super().run(statement, params)

    assert check_in(AnotherIsFaster()) == Sleep.ASKED


def test_a_database_that_was_put_to_sleep_sleeps(db: DjangoDatabase) -> None:
    """Also one that no host has used, and with its copies."""
    database_identity.put_to_sleep(db)
    assert check_in(db) == Sleep.ASKED
    assert database_identity.wake(db) == Sleep.ASKED
    check_in(db)
    database_identity.put_to_sleep(db)
    assert check_in(db) == Sleep.ASKED


def test_where_nobody_may_ask_who_the_server_is_no_database_is_a_copy(
    db: DjangoDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_in(db)
    rewrite(other_server)
    monkeypatch.setattr(database_identity, "SERVER", "SELECT 18, false")
    monkeypatch.setattr(database_identity, "IDENTITY", "SELECT 1 / 0")
    assert check_in(db) is check_again(db) is None
    database_identity.put_to_sleep(db)
    assert check_in(db) == check_again(db) == Sleep.ASKED
    database_identity.wake(db)
    assert check_in(db) is check_again(db) is None
    assert not DatabaseIdentity.objects.exists()
