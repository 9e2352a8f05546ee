"""The database that a command works on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db import InterfaceError, OperationalError, connections

from django_jobqueue.conf import conf
from django_jobqueue.domain.databases import vendor_problem
from django_jobqueue.store.errors import NEEDS_MIGRATE
from django_jobqueue.text.suggestions import did_you_mean


@contextmanager
def using(alias: str | None) -> Iterator[None]:
    """Let the jobs be in this database instead of JOBQUEUE['DATABASE'], until the block
    ends. Raises CommandError."""
    if alias is None:
        yield
        return
    check(alias)
    with conf.override({"DATABASE": alias}):
        yield


def check(alias: str, flag: str = "--database") -> None:
    """Raises CommandError unless there is such a PostgreSQL database; ``flag`` gave
    it."""
    if alias not in connections.settings:
        hint = did_you_mean(alias, connections.settings)
        raise CommandError(
            f"{flag}: there is no database {alias!r} in DATABASES.{hint}"
        )
    if problem := vendor_problem(alias):
        raise CommandError(problem)


def explained(error: DatabaseError) -> str | None:
    """The message for a database that cannot be used; None for another error."""
    if getattr(error.__cause__, "sqlstate", None) in NEEDS_MIGRATE:
        return (
            "The tables of the job queue are missing or not up to date: run "
            "manage.py migrate."
        )
    if not isinstance(error, OperationalError | InterfaceError):
        return None
    return (
        f"The database {conf.database!r} cannot be used: {' '.join(str(error).split())}"
    )
