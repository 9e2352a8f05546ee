"""A worker in threads of this process, and the log lines of the framework."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import django
import pytest
from asgiref.sync import async_to_sync

from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.workers.worker import Worker
from tests.sample import tasks
from tests.support.waiting import eventually

LOGGER = "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"


@contextmanager
def working() -> Iterator[Worker]:
    """A worker whose loops run in threads, until the end."""
    worker = Worker(WorkerConfig(threads=2, async_slots=10))
    worker.register()
    worker.build()
    worker.start()
    try:
        yield worker
    finally:
        worker.drain()
        eventually(lambda: worker.is_empty, what="the worker to be done")
        worker.stop(5)
        for executor in worker.executors:
            executor.stop(5)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """The log records of the framework."""
    caplog.set_level(logging.DEBUG, LOGGER)
    kept: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = kept.append  # type: ignore[method-assign]
    logging.getLogger(LOGGER).addHandler(handler)
    yield kept
    logging.getLogger(LOGGER).removeHandler(handler)


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    tasks.seen.clear()


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine; what it does in threads is done in this one."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async_to_sync(test)(*args, **kwargs)

    return run
