"""The jobs that a test can see: those in its database, or in its process."""

from __future__ import annotations

from typing import Any, Final

from django_jobqueue.conf import conf
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.store import find
from django_jobqueue.store.connection import Database, DjangoDatabase
from django_jobqueue.store.find import ARCHIVED, QUEUED, job_of
from django_jobqueue.store.rows import Job


def seen() -> list[Job]:
    """All jobs that were enqueued and are not pruned, oldest first."""
    if conf.mode == "queue":
        return enqueued(DjangoDatabase())
    return [stored.job for stored in memory]


def name_of(handler: Any) -> str:
    """The job type of a handler, of a task, or of this name. Raises TypeError."""
    if isinstance(handler, Handler):
        return handler.name
    name = getattr(handler, "module_path", handler)
    if not isinstance(name, str):
        raise TypeError(
            f"{handler!r} is no handler, no task and no name of a job type."
        )
    return name


def known_name_of(handler: Any) -> str:
    """The same name. Raises UnknownJobType, so that a typing error makes no test
    pass."""
    name = name_of(handler)
    if registry.get(name) is None:
        known = find.known_names(DjangoDatabase()) if conf.mode == "queue" else []
        if name not in known:
            raise UnknownJobType(name, registry.near(name, known))
    return name


ENQUEUED: Final = f"{QUEUED} UNION ALL {ARCHIVED} ORDER BY id"


def enqueued(db: Database) -> list[Job]:
    """All jobs, waiting, running and over, in the order in which they were made."""
    return [job_of(row) for row in db.fetch(ENQUEUED)]
