"""The tables of other job queues, as their released packages make them."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import django
import pytest
from django.apps import apps
from django.contrib.admin import site
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.test import modify_settings
from django.test.utils import CaptureQueriesContext

WRITES = ("ALTER", "CREATE", "DROP", "INSERT", "SET", "UPDATE")


_made: dict[str, list[str]] = {}  # what the migrations of an app have written


def _make_tables(app: str) -> None:
    """Run its migrations; from the second test on only their statements."""
    if app not in _made:
        with CaptureQueriesContext(connection) as queries:
            executor = MigrationExecutor(connection)
            executor.migrate(executor.loader.graph.leaf_nodes(app))
        statements = [query["sql"] for query in queries.captured_queries]
        _made[app] = [one for one in statements if one.startswith(WRITES)]
        return
    with connection.cursor() as cursor:
        cursor.execute(";".join(one.rstrip("; ") for one in _made[app]))


@contextmanager
def installed(app: str, *needs: str) -> Iterator[Any]:
    """This app, with its tables in the transaction of the test; skips the test where
    the package is not there, or does not know this Django."""
    for module in (app, *needs):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{app} or what it needs is not installed: {module}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        try:
            changed = modify_settings(INSTALLED_APPS={"append": app})
            changed.enable()
        except Exception as error:  # whatever their code raises
            pytest.skip(
                f"{app} does not work with Django {django.__version__}: {error}"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _make_tables(app)
        yield apps.get_app_config(app)
    finally:
        changed.disable()
        registered = [model for model in site._registry if model._meta.app_label == app]
        for model in registered:  # by the app's own admin, which Django discovered
            site.unregister(model)


@pytest.fixture
def beat(db: None) -> Iterator[Any]:
    """django-celery-beat."""
    with installed("django_celery_beat", "celery", "timezone_field") as app:
        yield app


@pytest.fixture
def q2(db: None) -> Iterator[Any]:
    """Django-Q2."""
    with installed("django_q", "picklefield") as app:
        yield app
