"""Restores the language and time zone that were active when a job was enqueued."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from zoneinfo import ZoneInfo

from asgiref.sync import iscoroutinefunction
from django.utils import timezone, translation
from django.utils.decorators import sync_and_async_middleware

from django_jobqueue.domain.context import Context

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
