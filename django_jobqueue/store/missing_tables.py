"""Explains the error when the tables of the job queue are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, ProgrammingError

from django_jobqueue.store.errors import NEEDS_MIGRATE

APP: Final = "django_jobqueue"


@contextmanager
def explaining(alias: str) -> Iterator[None]:
    """Let errors in the block say what to do."""
    try:
        yield
    except ProgrammingError as error:
        raise explained(error, alias) from error.__cause__


def explained(error: ProgrammingError, alias: str) -> ProgrammingError:
    """The same error, with advice if a table, column or function is missing."""
    if getattr(error.__cause__, "sqlstate", None) not in NEEDS_MIGRATE:
        return error
    command = "manage.py migrate"
    if alias != DEFAULT_DB_ALIAS:
        command += f" --database {alias}"
    advice = f"run {command}"
    if apps.apps_ready and not apps.is_installed(APP):
        advice = f"add {APP!r} to INSTALLED_APPS, and {advice}"
    first_line = " ".join(str(error).split("\n", 1)[0].split())
    return ProgrammingError(
        "The tables of the job queue are missing or not up to date in the database "
        f"{alias!r}: {advice}. ({first_line})"
    )
