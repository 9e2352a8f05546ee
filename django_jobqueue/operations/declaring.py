"""Declare job types that no code has: remote workers do their jobs."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ImproperlyConfigured

from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.policy import name_problem
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.remote import remote_declaration
from django_jobqueue.exceptions import DeclaredInCode, InvalidArguments
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase


@sync_only()
def declare_job_type(
    name: str,
    *,
    description: str = "",
    using: str | None = None,
    by: str = "",
    **options: Any,
) -> bool:
    """Create a job type that no code declares, or change it.

    ``options`` are those of ``remote_job``; omitted ones have their defaults. Returns
    whether the job type is new. Raises InvalidArguments, and DeclaredInCode for one
    that code declares.
    """
    return _declare(name, options, description, using=using, by=by)


def declare_for_program(
    name: str, *, description: str, by: str, **options: Any
) -> bool:
    """The same, as a program says it, which knows the options of ``OF_PROGRAMS``
    alone: of a job type that is there the others stay, such as its sensitive keys."""
    return _declare(name, options, description, by=by, in_part=True)


def _declare(
    name: str,
    options: dict[str, Any],
    description: str,
    *,
    by: str,
    using: str | None = None,
    in_part: bool = False,
) -> bool:
    if problem := name_problem(name):
        raise InvalidArguments(f"name {problem}")
    where = f"job type {name!r}"
    try:
        declaration = remote_declaration(where, name, options, description=description)
    except ImproperlyConfigured as error:
        raise InvalidArguments(str(error).rpartition(f"{where}: ")[2]) from None
    db = DjangoDatabase(using)
    handler = job_types.stored_handler(db, name)
    if handler or registry.get(name) is not None:
        raise DeclaredInCode(name)
    if in_part:
        job_types.declare_in_part(db, declaration)
    else:
        job_types.declare(db, [declaration])
    details: dict[str, Any] = {"job_type": name}
    details |= {option: str(value) for option, value in options.items()}
    record("declare", by, 1, details, using=using)
    return handler is None
