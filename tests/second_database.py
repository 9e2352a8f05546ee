"""Another database with the tables of the jobs; tests import the fixture."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections
from psycopg.sql import SQL
from pytest_django import DjangoDbBlocker

from django_jobqueue.store import connection as store_connection
from django_jobqueue.store.queue import insert

SECOND = "second"


@pytest.fixture(scope="module", autouse=True)
def second(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Another database, which is migrated."""
    with django_db_blocker.unblock():
        name = f"{connection.settings_dict['NAME']}_second"
        parameters = {**connection.get_connection_params(), "dbname": "postgres"}
        for option in ("context", "cursor_factory", "prepare_threshold"):
            parameters.pop(option, None)
        with psycopg.connect(**parameters, autocommit=True) as server:
            server.execute(SQL(f'DROP DATABASE IF EXISTS "{name}"'))
            server.execute(SQL(f'CREATE DATABASE "{name}"'))
            settings = {**connections.settings["default"], "NAME": name}
            connections.settings[SECOND] = settings
            call_command("migrate", database=SECOND, verbosity=0)
            insert._known.clear()
            yield
            connections[SECOND].close()
            del connections[SECOND]
            del connections.settings[SECOND]
            store_connection._usable.discard(SECOND)
            server.execute(SQL(f'DROP DATABASE "{name}" WITH (FORCE)'))
