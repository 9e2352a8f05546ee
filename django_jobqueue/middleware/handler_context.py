"""Restores what was active at the enqueue of a job, and names it in log records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from zoneinfo import ZoneInfo

from asgiref.sync import iscoroutinefunction
from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware

from django_jobqueue.domain.context import Context
from django_jobqueue.exceptions import Fail
from django_jobqueue.logs import JobFilter

logger = logging.getLogger("django_jobqueue.attempt")


@sync_and_async_middleware
def localize(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Activate the ``language`` and the ``time_zone`` of the job's metadata while its
    handler runs. A missing or unknown one changes nothing.

    It is automatic for job types that capture one of them: see ``CAPTURE``.
    """
    if iscoroutinefunction(get_result):

        async def arun(context: Context) -> Any:
            with _as_at_the_enqueue(context):
                return await get_result(context)

        return arun

    def run(context: Context) -> Any:
        with _as_at_the_enqueue(context):
            return get_result(context)

    return run


def _as_at_the_enqueue(context: Context) -> ExitStack:
    language = context.metadata.get("language")
    zone = context.metadata.get("time_zone")
    with ExitStack() as entered:
        if isinstance(language, str) and language:
            if translation.check_for_language(language):
                entered.enter_context(translation.override(language))
            else:
                _unknown(context, "language", language)
        if isinstance(zone, str) and zone:
            try:
                entered.enter_context(timezone.override(ZoneInfo(zone)))
            except (ValueError, OSError, LookupError):  # as ZoneInfo raises
                _unknown(context, "time zone", zone)
        return entered.pop_all()


def _unknown(context: Context, what: str, name: str) -> None:
    logger.warning("Job %s was enqueued in the unknown %s %r", context.id, what, name)


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


def in_tenant(get_result: Callable[[Context], Any]) -> Callable[[Context], Any]:
    """Run the handler in the schema that the job's metadata name as ``tenant``, by
    django-tenants. A job whose schema does not exist fails at once: with a search path
    that leads nowhere it would write into the shared tables.

    It is sync, so async handlers run one at a time: they share a connection.
    """

    def run(context: Context) -> Any:
        tenant = context.metadata.get("tenant")
        if tenant is None:
            return get_result(context)
        from django_tenants.utils import schema_context, schema_exists

        if not (isinstance(tenant, str) and schema_exists(tenant)):
            raise Fail(f"The tenant {tenant!r} has no schema.")
        with schema_context(tenant):
            return get_result(context)

    return run
