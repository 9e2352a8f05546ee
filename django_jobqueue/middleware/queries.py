"""Counts the database queries of an attempt, and their time."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakSet

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.utils.decorators import sync_and_async_middleware

from django_jobqueue.domain.context import Context

logger = logging.getLogger("django_jobqueue.queries")


class QueryCount:
    """The queries of one attempt."""

    def __init__(self) -> None:
        self.queries = 0
        self.seconds = 0.0


# A connection may serve several async handlers by turns, so what counts on it asks
# whose turn it is.
_current: Final[ContextVar[QueryCount | None]] = ContextVar(
    "jobqueue_queries", default=None
)
_here = threading.local()  # whether this thread's connections are watched
_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()  # likewise


@sync_and_async_middleware
def count_queries(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Count the queries of each attempt, over all databases, and their time.

    They are written into its report (``queries``, ``query_ms``) and logged at level
    debug. An attempt without queries has no report.
    """
    connection_created.connect(_watch, dispatch_uid="jobqueue.queries")
    if iscoroutinefunction(get_result):

        async def arun(context: Context) -> Any:
            loop = asyncio.get_running_loop()
            if loop not in _loops:
                await sync_to_async(_watch_all)()
                _loops.add(loop)
            with _counting(context):
                return await get_result(context)

        return arun

    def run(context: Context) -> Any:
        if not getattr(_here, "watched", False):
            _watch_all()
            _here.watched = True
        with _counting(context):
            return get_result(context)

    return run


@contextmanager
def _counting(context: Context) -> Iterator[None]:
    count = QueryCount()
    token = _current.set(count)
    try:
        yield
    finally:
        _current.reset(token)
        if count.queries:
            _record(context, count)


def _record(context: Context, count: QueryCount) -> None:
    context.report.count_queries(count.queries, count.seconds)
    milliseconds = count.seconds * 1_000
    logger.debug(
        "Job %s (%s) attempt %d sent %d queries, which took %.1f ms",
        context.id,
        context.job_type,
        context.attempt,
        count.queries,
        milliseconds,
        extra={"queries": count.queries, "query_ms": milliseconds},
    )


def _watch_all() -> None:
    """Count on the connections of this thread that are there already."""
    for wrapper in connections.all(initialized_only=True):
        _watch(wrapper)


def _watch(connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    if _count not in connection.execute_wrappers:
        # The first: a handler may be inside ``connection.execute_wrapper()``, which
        # takes the last one away again.
        connection.execute_wrappers.insert(0, _count)


def _count(execute: Any, statement: Any, params: Any, many: bool, context: Any) -> Any:
    count = _current.get()
    if count is None:
        return execute(statement, params, many, context)
    began = time.monotonic()
    try:
        return execute(statement, params, many, context)
    finally:
        count.queries += 1
        count.seconds += time.monotonic() - began
