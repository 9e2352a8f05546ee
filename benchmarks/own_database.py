"""A database of its own on the server of the test suite."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_database(purpose: str) -> Iterator[None]:
    """A database with the tables, which Django's default connection uses meanwhile; it
    is dropped at the end."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    import django

    django.setup()
    from django.db import connection

    connection.settings_dict["TEST"]["NAME"] = f"jobqueue_{purpose}_{os.getpid()}"
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)
