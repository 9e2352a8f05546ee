"""Enqueue jobs by the name of their type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation

from django_jobqueue.domain.arguments import refuse_call, several_calls
from django_jobqueue.domain.async_code import explain
from django_jobqueue.domain.job_options import option_of_types
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.enqueueing.enqueued_ids import EnqueuedIds
from django_jobqueue.enqueueing.enqueuer import Data, Enqueuer
from django_jobqueue.enqueueing.options import JobOptions, Options
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.store.rows import Job
from django_jobqueue.text.foreign_words import option_hint
from django_jobqueue.text.option_forms import as_keywords


def enqueue(
    job_type: str,
    data: Mapping[str, Any] | None = None,
    **options: Unpack[JobOptions],
) -> Job:
    """Enqueue a job by the name of its type. The handler need not be known here.

    The options are those of ``Handler.using``. Raises UnknownJobType, with the most
    similar names, and the errors of ``Handler.enqueue``.
    """
    declaration, enqueuer = _enqueuer(job_type, options)
    checked = _checked(declaration, {} if data is None else data)
    try:
        return enqueuer.enqueue(checked)
    except SynchronousOnlyOperation as error:
        explain(error, "enqueue", "aenqueue")


async def aenqueue(
    job_type: str,
    data: Mapping[str, Any] | None = None,
    **options: Unpack[JobOptions],
) -> Job:
    """``enqueue`` for async code."""
    return await sync_to_async(enqueue)(job_type, data, **options)


def enqueue_many(
    job_type: str, calls: Iterable[Mapping[str, Any]], **options: Unpack[JobOptions]
) -> EnqueuedIds:
    """Enqueue a job for each dict of data; return their ids, in order.

    It enqueues all or none, in the caller's transaction. Raises the errors of
    ``enqueue``.
    """
    declaration, enqueuer = _enqueuer(job_type, options)
    checked: list[Data] = []
    several = several_calls(calls)
    try:
        for call in several:
            checked.append(_checked(declaration, call))
    except InvalidArguments as error:
        refuse_call(len(checked), error)
    try:
        return enqueuer.enqueue_many(checked)
    except SynchronousOnlyOperation as error:
        explain(error, "enqueue_many", "aenqueue_many")


async def aenqueue_many(
    job_type: str, calls: Iterable[Mapping[str, Any]], **options: Unpack[JobOptions]
) -> EnqueuedIds:
    """``enqueue_many`` for async code."""
    return await sync_to_async(enqueue_many)(job_type, calls, **options)


def _enqueuer(
    job_type: object, options: Mapping[str, Any]
) -> tuple[Declaration | None, Enqueuer]:
    if not isinstance(job_type, str):
        raise InvalidArguments(
            f"enqueue takes the name of a job type, not {job_type!r}. A handler has an "
            "enqueue of its own."
        )
    declaration = registry.get(job_type)
    for name in options.keys() - JobOptions.__annotations__.keys():
        raise TypeError(_no_option(name, job_type, declaration))
    return declaration, Enqueuer(job_type, declaration, Options().but(options))


def _no_option(name: str, job_type: str, declaration: Declaration | None) -> str:
    """Why a job has no such option, and what to write instead."""
    parameters = None if declaration is None else declaration.parameters
    if parameters is not None and name in parameters.names:
        return (
            f"{name!r} is a parameter of {parameters.function}(), not an option of a "
            f"job. The data is one dict: enqueue({job_type!r}, {{{name!r}: …}})."
        )
    hint = option_of_types(name)
    if name in ("args", "kwargs"):
        hint = f" The data is one dict: enqueue({job_type!r}, {{…}})."
    elif not hint:
        hint = as_keywords(option_hint(name, JobOptions.__annotations__))
    return f"There is no option {name!r} of a job.{hint}"


def _checked(declaration: Declaration | None, given: object) -> Data:
    """The data, checked against the handler if it is known here. Raises
    InvalidArguments."""
    data = dict(given) if isinstance(given, Mapping) else given
    if declaration is not None and (
        problem := declaration.parameters.call_problem(data)
    ):
        raise InvalidArguments(as_keywords(problem))
    if not isinstance(data, dict):
        raise InvalidArguments(
            f"The data of a job must be an object, not {type(data).__name__}."
        )
    return data
