"""The tables of other job queues, as the models of their released packages are."""

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
from django.test import modify_settings


@contextmanager
def installed(app: str, *needs: str) -> Iterator[Any]:
    """This app, with its tables in the transaction of the test; skips the test where
    the package is not there, or does not know this Django."""
    for module in (app, *needs):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        try:
            changed = modify_settings(INSTALLED_APPS={"append": app})
            changed.enable()
        except Exception as error:  # whatever their code raises
            pytest.skip(f"needs another {app} for Django {django.__version__}: {error}")
    try:
        with connection.schema_editor() as editor:
            for model in apps.get_app_config(app).get_models():
                if not model._meta.proxy:
                    editor.create_model(model)
        yield apps.get_app_config(app)
    finally:
        changed.disable()
        # private: there is no other list of the models
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
