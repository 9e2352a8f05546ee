"""Resets connections between jobs, so that no job finds the state of another."""

from __future__ import annotations

import logging
import threading
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.db import connections, reset_queries
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from psycopg import sql
from psycopg.pq import TransactionStatus

from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.store.bounded_connection import run_bounded

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
    has_connected = False  # and have connected to a database


_here = ThreadState()


class _Used:
    """Notes on a connection whether a handler used it."""

    def __init__(self) -> None:
        self.used = False

    def __call__(
        self, execute: Any, statement: Any, params: Any, many: bool, context: Any
    ) -> Any:
        self.used = True
        return execute(statement, params, many, context)


def keep_connections() -> None:
    """Let the handlers' threads keep their connections from job to job.

    CONN_MAX_AGE says how long a connection may live; with Django's default of 0 each
    job would make a new one, which costs more than most jobs. Connections of other
    threads of this process live as long as the project says.
    """
    connection_created.connect(_watch, dispatch_uid="jobqueue.hygiene")


def handlers_run_here() -> ThreadState:
    """Handlers are going to run in this thread. What comes before and after each job
    can be left out until they have connected to a database."""
    _here.is_handlers = True
    return _here


def before_job() -> None:
    """Close connections of this thread that the server has closed meanwhile, so that
    the handler gets a new one instead of an error."""
    if not _here.has_connected:
        return
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is not None and _is_cut(wrapper):
            _drop(wrapper)


def after_job() -> None:
    """Leave every connection of this thread as a job expects to find it."""
    if not _here.has_connected:
        return
    if settings.DEBUG:
        reset_queries()
    for wrapper in connections.all(initialized_only=True):
        if wrapper.connection is None:
            continue
        try:
            _clean(wrapper)
        except Exception:
            logger.debug("A connection could not be reset", exc_info=True)
            _drop(wrapper)


def _clean(wrapper: BaseDatabaseWrapper) -> None:
    if _is_open(wrapper):
        logger.warning("A handler left a transaction open; its connection is closed")
        _drop(wrapper)
        return
    if wrapper.vendor == "postgresql" and _was_used(wrapper):
        _reset(wrapper)
    wrapper.close_if_unusable_or_obsolete()
    if getattr(wrapper, "pool", None):
        wrapper.close()  # back to the pool


def _is_cut(wrapper: Any) -> bool:
    """Whether there is something to read where nothing is expected: mostly its end."""
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
    level = wrapper.isolation_level if "isolation_level" in options else None
    if (raw.isolation_level, raw.read_only, raw.deferrable) != (level, None, None):
        raw.isolation_level, raw.read_only, raw.deferrable = level, None, None
    if not getattr(wrapper, "pool", None) and _has_settings_of_the_project():
        connection_created.send(sender=type(wrapper), connection=wrapper)
        _was_used(wrapper)  # by them


def _has_settings_of_the_project() -> bool:
    """Whether anybody but us, and Django, does something with new connections. From a
    pool a connection is a new one each time."""
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
    _here.has_connected = True
    settings_dict = connection.settings_dict
    pooled = settings_dict.get("OPTIONS", {}).get("pool")
    if settings_dict.get("CONN_MAX_AGE") == 0 and not pooled:
        connection.close_at = None
    wrappers = connection.execute_wrappers
    if not any(isinstance(wrapper, _Used) for wrapper in wrappers):
        # The first, since a handler may be inside ``connection.execute_wrapper()``,
        # which takes the last one away at its end.
        wrappers.insert(0, _Used())


def _was_used(wrapper: BaseDatabaseWrapper) -> bool:
    """Whether a handler ran a statement since this was last asked."""
    for watcher in wrapper.execute_wrappers:
        if isinstance(watcher, _Used):
            used, watcher.used = watcher.used, False
            return used
    return True
