"""The database of the jobs."""

from __future__ import annotations

from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from django_jobqueue.conf import conf
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.text.suggestions import did_you_mean

POSTGRESQL: Final = "postgresql"


def vendor_problem(alias: str) -> str | None:
    """The sentence about a database of another kind, whoever needs PostgreSQL there."""
    vendor = connections[alias].vendor
    if vendor == POSTGRESQL:
        return None
    return f"The job queue needs PostgreSQL; the database {alias!r} is {vendor}."


def check_alias(alias: str, *, is_given: bool) -> bool:
    """True if jobs can be in this database in every mode.

    Raises InvalidArguments for an alias that cannot be used and was given by the
    caller; ImproperlyConfigured for one that the project's settings name.
    """
    problem = alias_problem(alias)
    if problem and is_given:
        raise InvalidArguments(f"using {problem}")
    if problem:
        raise ImproperlyConfigured(
            "The database of the jobs, which JOBQUEUE['DATABASE'] or else "
            f"DATABASE_ROUTERS name, {problem}"
        )
    return connections[alias].vendor == POSTGRESQL


def alias_problem(alias: object) -> str | None:
    """The problem of this alias as the jobs' database, in words that follow it."""
    if not isinstance(alias, str) or alias not in connections.settings:
        hint = did_you_mean(alias, connections.settings)
        return f"must be an alias of DATABASES, not {alias!r}.{hint}"
    vendor = connections[alias].vendor
    if conf.mode == "queue" and vendor != POSTGRESQL:
        return f"must be a PostgreSQL database; {alias!r} is {vendor}."
    return None
