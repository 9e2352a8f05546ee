"""Makes our functions and triggers where migrations are off, and Django makes tables of
the models: ``pytest --no-migrations``, ``TEST = {"MIGRATE": False}``. Makes the one for
ids again where a restore left one that cannot run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.db import connections, router
from django.db.migrations.loader import MigrationLoader

from django_jobqueue.migrations import _sql as sql
from django_jobqueue.rooms import rooms

IS_MADE = "SELECT to_regprocedure('jobqueue_wanted_slots(text)') IS NOT NULL"


def before_tables(sender: AppConfig, using: str, **kwargs: Any) -> None:
    """Make what the tables need."""
    if _is_ours(sender, using):
        _run(using, sql.BEFORE_TABLES)


def after_tables(sender: AppConfig, using: str, **kwargs: Any) -> None:
    """Make the rest, once: Django sends the signal after each flush of a test, too."""
    if not _is_ours(sender, using):
        return
    with connections[using].cursor() as cursor:
        cursor.execute(IS_MADE)
        (is_made,) = cursor.fetchone()
    if not is_made:
        _run(using, sql.AFTER_TABLES)
        _run(using, [(room.storage, "") for room in rooms() if room.storage])


def mend_ids(using: str) -> None:
    """Make the function of new ids again if this server lacks what it calls."""
    connection = connections[using]
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(sql.NEW_ID_IS_MISSING)
        if cursor.fetchone() == (True,):
            cursor.execute(sql.NEW_ID)


def _is_ours(app: AppConfig, using: str) -> bool:
    """Whether tables of ours are made in this database, and no migration makes them."""
    module, _ = MigrationLoader.migrations_module(app.label)
    return (
        module is None
        and connections[using].vendor == "postgresql"
        and router.allow_migrate(using, app.label)
    )


def _run(using: str, pairs: Iterable[tuple[str, str]]) -> None:
    with connections[using].cursor() as cursor:
        for make, _undo in pairs:
            cursor.execute(make)
