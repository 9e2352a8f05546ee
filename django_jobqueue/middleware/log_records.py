"""Adds the job to log records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from django.utils.decorators import sync_and_async_middleware

from django_jobqueue.domain.context import Context
from django_jobqueue.logs import JobFilter

_filter = JobFilter()


@sync_and_async_middleware
def log_context(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Give every log record of a handler the attributes of ``JobFilter``: ``job_id``,
    ``job_type``, ``attempt``.

    It adds that filter to the logging handlers that exist when the first job of a type
    starts. For later ones add it in ``LOGGING``.
    """
    for handler in _handlers():
        handler.addFilter(_filter)
    return get_result


def _handlers() -> Iterator[logging.Handler]:
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    for logger in loggers:
        if isinstance(logger, logging.Logger):
            yield from logger.handlers
