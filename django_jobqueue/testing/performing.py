"""``perform()``: one attempt, without a database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

from asgiref.sync import sync_to_async

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import from_json, to_json
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.execution.inline import run_here, unclaimed
from django_jobqueue.store.rows import Job
from django_jobqueue.testing.interruptions import let_through
from django_jobqueue.testing.visible_jobs import name_of

NO_DATA: Final[Mapping[str, Any]] = {}


@dataclass(slots=True, kw_only=True, eq=False)
class Performed(Outcome):
    """The outcome of an attempt, with values that the queue would not store."""

    error: BaseException | None  # what the handler raised
    value: Any  # what it returned, as JSON brings it back
    context: Context  # what it told: progress, lines, metadata


def perform(
    handler: Any,
    data: Mapping[str, Any] = NO_DATA,
    *,
    attempt: int = 1,
    max_attempts: int | None = None,
    crashes: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> Performed:
    """Run one attempt of a job that is not stored, with all its middleware, and return
    its outcome, including any exception of the handler.

    :param handler: a handler, a task, or the name of a job type.
    :param data: by the names of the parameters.
    :param attempt: the number of the attempt, 1 for the first.
    :param max_attempts: the job's maximum; by default that of its type.
    :param crashes: how often a worker died with it.
    :param metadata: the metadata of its ``Context``.

    It does not use the database; the handler may. Raises InvalidArguments for data that
    could not be enqueued and for an attempt that would not be made, and UnknownJobType.
    """
    name = name_of(handler)
    declaration = registry.get(name)
    if declaration is None:
        raise UnknownJobType(name, registry.near(name))
    if problem := declaration.parameters.call_problem(dict(data)):
        raise InvalidArguments(problem)
    text = to_json(dict(data), limit=conf.max_data_bytes)
    job = _job(declaration, data, attempt, max_attempts, crashes)
    own = to_json(dict(metadata or {}), limit=conf.max_data_bytes, what="metadata")
    run = unclaimed(job, declaration, text, own)
    _check_attempt(attempt, run.max_attempts)
    outcome = run_here(run).outcome
    let_through(run.error)
    values = {field.name: getattr(outcome, field.name) for field in fields(Outcome)}
    value = None if outcome.result is None else from_json(outcome.result)
    return Performed(**values, error=run.error, value=value, context=run.here())


def _check_attempt(attempt: int, allowed: int | None) -> None:
    if allowed is not None and attempt > allowed:
        raise InvalidArguments(
            f"max_attempts is {allowed}, so there is no attempt {attempt}; say "
            f"max_attempts={attempt}."
        )


async def aperform(
    handler: Any,
    data: Mapping[str, Any] = NO_DATA,
    *,
    attempt: int = 1,
    max_attempts: int | None = None,
    crashes: int = 0,
    metadata: Mapping[str, Any] | None = None,
) -> Performed:
    """``perform`` for async tests."""
    return await sync_to_async(perform)(
        handler,
        data,
        attempt=attempt,
        max_attempts=max_attempts,
        crashes=crashes,
        metadata=metadata,
    )


def _job(
    declaration: Declaration,
    data: Mapping[str, Any],
    attempt: int,
    max_attempts: int | None,
    crashes: int,
) -> Job:
    now = datetime.now(UTC)
    return Job(
        id=new_id(),
        job_type=declaration.name,
        queue=declaration.policy.queue,
        priority=declaration.policy.priority,
        status="running",
        data=data,
        run_after=now,
        expires_at=None,
        created_at=now,
        attempts=attempt,
        max_attempts=max_attempts,
        crashes=crashes,
    )
