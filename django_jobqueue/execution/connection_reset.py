"""Resets connections between jobs, so that no job finds the state of another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.store.session import run_bounded

logger = logging.getLogger("django_jobqueue.database")

CLEANING: Final = 5.0  # seconds that it may take; a network may be half open

# Everything of a session that outlives a transaction, in one round trip. The settings
# that Django made when it connected are made again with it, those of the project after
# it, by the receivers of ``connection_created`` that made them.
RESET: Final = (
    "RESET SESSION AUTHORIZATION; RESET ALL; SELECT pg_advisory_unlock_all(); "
    "UNLISTEN *; DISCARD TEMP"
)


class ThreadState(threading.local):
    """State of this thread."""

    is_handlers = False  # handlers run in it
    must_reset = False  # and may have left something in a connection


_here = ThreadState()


class _Cursors:
    """Makes the cursors of a connection, and notes that a handler asked for one:
    Django's, or psycopg's own."""

    def __init__(self, factory: Callable[..., Any]) -> None:
        self.factory = factory
        self.used = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.used = True
        return self.factory(*args, **kwargs)


def keep_connections() -> None:
    """Let the handlers' threads keep their connections from job to job.

    CONN_MAX_AGE says how long a connection may live; with Django's default of 0 each
    job would make a new one, which costs more than most jobs. Connections of other
    threads of this process live as long as the project says.
    """
    connection_created.connect(_watch, dispatch_uid="jobqueue.hygiene")


def handlers_run_here() -> ThreadState:
    """Handlers are going to run in this thread. What comes before and after each job
    can be left out until they have connected to a database, unless the class of a
    connection has state of its own before."""
    _here.is_handlers = True
    engines = (database["ENGINE"] for database in connections.settings.values())
    if not all(engine.startswith("django.") for engine in engines):
        _here.must_reset = True
    return _here


def before_job() -> None:
    """Close connections of this thread that the server has closed meanwhile, so that
    the handler gets a new one instead of an error."""
    if not _here.must_reset:
        return
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None and _is_cut(wrapper):
            _drop(wrapper)


def after_job() -> None:
    """Leave every connection of this thread as a job expects to find it."""
    if not _here.must_reset:
        return
    if settings.DEBUG:
        reset_queries()
    for wrapper in connections.all(initialized_only=True):
        try:
            if wrapper.connection is not None:
                _clean(wrapper)
        except Exception:
            logger.debug("A connection could not be reset", exc_info=True)
            _drop(wrapper)
        if not type(wrapper).__module__.startswith("django."):
            _forget(wrapper)


def _forget(wrapper: BaseDatabaseWrapper) -> None:
    """Let the next job make its own: a class that is not Django's may mirror in Python
    what the server was told, such as the schema of a tenant, and trust that after a
    reset."""
    _drop(wrapper)
    del connections[wrapper.alias]


def _clean(wrapper: BaseDatabaseWrapper) -> None:
    if _is_open(wrapper):
        logger.warning("A handler left a transaction open; its connection is closed")
        _drop(wrapper)
        return
    if wrapper.vendor == "postgresql":
        _reset_attributes(wrapper)
        if _was_used(wrapper):
            _reset(wrapper)
    wrapper.close_if_unusable_or_obsolete()
    if getattr(wrapper, "pool", None):
        wrapper.close()  # back to the pool


def _is_cut(wrapper: Any) -> bool:
    """True if there is unexpected input: mostly the connection's end."""
    if wrapper.vendor != "postgresql":
        return False
    if wrapper.connection.closed:
        return True
    return bool(wait_readable(wrapper.connection.fileno(), within=0))


def _is_open(wrapper: Any) -> bool:
    if wrapper.in_atomic_block or wrapper.needs_rollback or not wrapper.autocommit:
        return True
    if wrapper.vendor != "postgresql":
        return False
    return bool(wrapper.connection.info.transaction_status != TransactionStatus.IDLE)


def _reset(wrapper: Any) -> None:
    raw = wrapper.connection
    parts: list[sql.Composable] = [sql.SQL(RESET)]
    if wrapper.timezone_name:
        zone = sql.Literal(wrapper.timezone_name)
        parts.append(sql.SQL("SET TIME ZONE {}").format(zone))
    options = wrapper.settings_dict.get("OPTIONS", {})
    if role := options.get("assume_role"):
        parts.append(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    run_bounded(raw, sql.SQL("; ").join(parts).as_string(raw), CLEANING)
    wrapper.errors_occurred = False  # it has answered
    if not getattr(wrapper, "pool", None) and _has_settings_of_the_project():
        connection_created.send(sender=type(wrapper), connection=wrapper)
        _was_used(wrapper)  # by them


def _reset_attributes(wrapper: Any) -> None:
    """Reset psycopg's own attributes, which need no statement."""
    raw = wrapper.connection
    has_level = "isolation_level" in wrapper.settings_dict.get("OPTIONS", {})
    made_with = {
        "autocommit": True,
        "isolation_level": wrapper.isolation_level if has_level else None,
        "read_only": None,
        "deferrable": None,
        "row_factory": tuple_row,
    }
    for name, value in made_with.items():
        if getattr(raw, name) != value:
            setattr(raw, name, value)


def _has_settings_of_the_project() -> bool:
    """True if the project configures new connections. A pooled connection counts as
    new each time."""
    known = apps.is_installed("django.contrib.postgres")
    uids = [uid for (uid, _sender), *_ in connection_created.receivers]
    return sum(not str(uid).startswith("jobqueue.") for uid in uids) > known


def _drop(wrapper: BaseDatabaseWrapper) -> None:
    """Close the connection in any state; the next use connects again."""
    wrapper.needs_rollback = False
    wrapper.in_atomic_block = False
    wrapper.savepoint_ids = []
    wrapper.run_on_commit = []
    wrapper.closed_in_transaction = False
    wrapper.close()


def _watch(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    if not _here.is_handlers:
        return
    _here.must_reset = True
    settings_dict = connection.settings_dict
    pooled = settings_dict.get("OPTIONS", {}).get("pool")
    if settings_dict.get("CONN_MAX_AGE") == 0 and not pooled:
        connection.close_at = None
    raw = connection.connection
    if connection.vendor == "postgresql" and not isinstance(
        raw.cursor_factory, _Cursors
    ):
        raw.cursor_factory = _Cursors(raw.cursor_factory)
        raw.server_cursor_factory = _Cursors(raw.server_cursor_factory)


def _was_used(wrapper: BaseDatabaseWrapper) -> bool:
    """True if a handler made a cursor since the last call."""
    raw: Any = wrapper.connection
    was_used = False
    for cursors in (raw.cursor_factory, raw.server_cursor_factory):
        was_used |= getattr(cursors, "used", True)
        if isinstance(cursors, _Cursors):
            cursors.used = False
    return was_used
