"""Databases of tests: copies of one that is migrated once for all processes, and for
later runs as long as the code is the same.

After a test that committed, a function in the database empties it in 1 ms. Django's
flush truncates every table, and makes content types, permissions and job types again,
by far the most that such a test would cost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import django
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, connections, transaction
from django.test import TransactionTestCase
from fasteners import InterProcessLock
from psycopg.sql import SQL, Identifier
from pytest_django import DjangoDbBlocker

from django_jobqueue.apps import _declare  # private: only migrate calls it
from django_jobqueue.contrib.schedules.apps import declare as declare_schedules
from django_jobqueue.domain.registry import Declaration, registry
from tests.support.commands import ROOT
from tests.support.kept_connections import TIDY

CODE: Final = ("django_jobqueue", "testproject/shop", "tests/sample")
PREFIX: Final = "jobqueue_migrated_"
KEPT: Final = {"django_content_type", "auth_permission"}  # the flush makes them anew
LARGE: Final = 1 << 20  # bytes: a table with many rows, dead ones too

# Neither foreign keys nor triggers, as in a TRUNCATE.
FUNCTION: Final = """
CREATE FUNCTION empty.all_tables() RETURNS void LANGUAGE plpgsql
SET session_replication_role = replica AS $$ BEGIN {steps} END $$
"""
DELETE: Final = """
IF pg_relation_size('{name}') > {large} THEN
  TRUNCATE {name} CASCADE;
ELSIF EXISTS (SELECT FROM {name}) THEN
  DELETE FROM {name};
END IF;
"""
RESTORE: Final = """
IF EXISTS (TABLE {name} EXCEPT ALL TABLE empty.{name})
   OR EXISTS (TABLE empty.{name} EXCEPT ALL TABLE {name}) THEN
  DELETE FROM {name};
  INSERT INTO {name} TABLE empty.{name};
END IF;
"""

_declared: dict[str, Declaration] = {}  # those of which the rows are restored
# private: conftest puts another in its place.
flush = TransactionTestCase._fixture_teardown


@cache
def fingerprint() -> str:
    """Names all code that a migrated database may depend on."""
    found = hashlib.sha256(repr((django.VERSION, settings.INSTALLED_APPS)).encode())
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


@contextmanager
def own_database(alias: str, name: str, blocker: DjangoDbBlocker) -> Iterator[None]:
    """A migrated database of this name, which an alias stands for meanwhile. Whoever
    uses it then needs the mark, as ever."""
    with blocker.unblock(), _server() as server:
        template = _migrated(server)
        _drop(server, name)
        server.execute(
            SQL("CREATE DATABASE {} TEMPLATE {}").format(
                Identifier(name), Identifier(template)
            )
        )
    with _named(alias, name):
        with blocker.unblock():
            remember_empty(alias)
        yield
    with blocker.unblock(), _server() as server:
        _drop(server, name)


def _migrated(server: psycopg.Connection[Any]) -> str:
    """The name of the database to copy, which is made if the code has changed."""
    name = PREFIX + fingerprint()
    with InterProcessLock(ROOT / ".cache" / "migrated.lock"):
        known = server.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX]
        ).fetchall()
        if (name,) not in known:
            for (old,) in known:
                _drop(server, old)
            unfinished = "jobqueue_unfinished"
            _drop(server, unfinished)
            server.execute(SQL("CREATE DATABASE {}").format(Identifier(unfinished)))
            with _named("default", unfinished):
                call_command("migrate", verbosity=0)
            server.execute(
                SQL("ALTER DATABASE {} RENAME TO {}").format(
                    Identifier(unfinished), Identifier(name)
                )
            )
    return name


@contextmanager
def _server() -> Iterator[psycopg.Connection[Any]]:
    parameters = {
        **connections["default"].get_connection_params(),
        "dbname": "postgres",
    }
    for option in ("context", "cursor_factory", "prepare_threshold"):
        parameters.pop(option, None)
    with psycopg.connect(**parameters, autocommit=True) as server:
        yield server


def _drop(server: psycopg.Connection[Any], name: str) -> None:
    server.execute(
        SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(Identifier(name))
    )


@contextmanager
def _named(alias: str, name: str) -> Iterator[None]:
    """An alias, which may be a new one, stands for the database of this name."""
    before = connections.settings.get(alias)
    changed = {**(before or connections.settings["default"]), "NAME": name}
    connections.settings[alias] = changed
    connections[alias].close()
    connections[alias].settings_dict = changed
    yield
    connections[alias].close()
    if before is None:
        del connections[alias], connections.settings[alias]
    else:
        connections.settings[alias] = connections[alias].settings_dict = before


def remember_empty(alias: str) -> None:
    """Make a function in the database that empties it: it deletes all rows, and
    restores those that are declared if they have changed."""
    connection = connections[alias]
    tables = connection.introspection.django_table_names(only_existing=True)
    names = sorted(set(tables) - KEPT)
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {', '.join(names)}")
        cursor.execute("DROP SCHEMA IF EXISTS empty CASCADE; CREATE SCHEMA empty")
        # No worker of a test has the number that another one makes up.
        cursor.execute("ALTER TABLE jobqueue_worker ALTER id RESTART WITH 1000")
    _declare(using=alias)
    declare_schedules(using=alias)
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        steps = ""
        for name in names:
            cursor.execute(f"SELECT EXISTS (SELECT FROM {name})")
            if cursor.fetchone() == (True,):
                cursor.execute(f"CREATE TABLE empty.{name} AS TABLE {name}")
                steps += RESTORE.format(name=name)
            else:
                steps += DELETE.format(name=name, large=LARGE)
        cursor.execute(FUNCTION.format(steps=steps))
    if alias == "default":
        _declared.clear()
        _declared.update({one.name: one for one in _known()})


def empty(test: TransactionTestCase) -> None:
    """Delete all rows but those that are declared."""
    if not all(map(_is_emptied, set(connections).intersection(type(test).databases))):
        flush(test)
    if any(_lasts(one) and _declared.get(one.name) != one for one in _known()):
        _declare(using="default")
        declare_schedules(using="default")
    keep_session()


def _known() -> Iterable[Declaration]:
    return list(registry._by_name.values())  # private: iterating declares lazy ones


def _lasts(declaration: Declaration) -> bool:
    """Whether it is not of a test, which nobody declares after it: of a function in it,
    or of jobs that are done elsewhere."""
    if declaration.is_remote or declaration.endpoint:
        return False
    return "<locals>" not in declaration.function.__qualname__


def _is_emptied(alias: str) -> bool:
    """Whether the function is there, and knows all tables."""
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute("SELECT empty.all_tables()")
    except ProgrammingError:
        return False
    return True


def keep_session() -> None:
    """Leave Django's session to the next test if it is sound, but nothing that was set
    there. Django itself makes another one for each test."""
    connection: Any = connections["default"]
    try:
        if connection.connection is not None and connection.pool is None:
            with connection.cursor() as cursor:
                cursor.execute(TIDY)
            connection.init_connection_state()
            return
    except DatabaseError:
        pass
    connection.close()
