"""Another database with the tables of the jobs; tests import the fixture."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from django_jobqueue.store import connection as store_connection
from django_jobqueue.store.queue import insert
from tests.support.database import own_database

SECOND = "second"


@pytest.fixture(scope="module", autouse=True)
def second(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Another database, which is migrated."""
    name = f"{connection.settings_dict['NAME']}_second"
    with own_database(SECOND, name, django_db_blocker):
        # What the app knows of the databases of its process.
        insert._known.clear()  # private: databases have no end elsewhere
        yield
    # private: as above
    store_connection._usable.discard(SECOND)
