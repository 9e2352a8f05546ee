"""Runs the handler of a job here, in the foreground, to see what it does.

It is no attempt at the job: its row stays as it is, whoever has it goes on with it, and
nothing of what the handler tells is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from django.db import connections, transaction

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.async_code import sync_only
from django_jobqueue.domain.context import Context
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Outcome
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import InvalidArguments, UnknownJobType
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.inline import run_here, unclaimed
from django_jobqueue.operations.audit_log import record
from django_jobqueue.operations.checks import checked_data
from django_jobqueue.store.rows import Job


class ForegroundRun(NamedTuple):
    """The result of running a handler in the foreground."""

    outcome: Outcome  # what a worker would do with the job
    error: BaseException | None  # that the handler raised
    context: Context  # what it told: progress, lines, metadata
    seconds: float


class _Undo(Exception):
    """Rolls transactions back."""


def check_runnable(job: Job, *, at_most_once: bool = False) -> None:
    """Raises UnknownJobType if no handler is here, and InvalidArguments for a job of an
    at-most-once type, unless those are wanted."""
    declaration = registry.get(job.job_type)
    if declaration is None:
        raise UnknownJobType(job.job_type, registry.near(job.job_type))
    if declaration.policy.delivery == Delivery.AT_MOST_ONCE and not at_most_once:
        raise InvalidArguments(
            f"Job {job.id} is of an at-most-once type: a worker may have started it, "
            "or may start it still."
        )


@sync_only()
def run_in_foreground(
    job: Job,
    *,
    data: Mapping[str, Any] | None = None,
    commit: bool = False,
    at_most_once: bool = False,
    by: str = "",
) -> ForegroundRun:
    """Run the handler with the data of this job, or with these, in this thread.

    Unless ``commit``, what it writes through Django is rolled back, in every database:
    jobs that it enqueues, too, and callbacks of ``on_commit`` are not called. What it
    does elsewhere stays. Raises UnknownJobType, InvalidArguments.
    """
    check_runnable(job, at_most_once=at_most_once)
    declaration = registry.get(job.job_type)
    assert declaration is not None
    values = job.data if data is None else data
    text = checked_data(job.job_type, values)
    metadata = to_json(
        dict(job.metadata or {}), limit=conf.max_data_bytes, what="metadata"
    )
    number = job.attempts if job.is_over else job.attempts + 1
    job = replace(job, data=values, attempts=max(1, number))
    attempt = unclaimed(job, declaration, text, metadata)
    details = {"id": str(job.id), "job_type": job.job_type, "commit": commit}
    record("run here", by, 1, details)
    began = time.monotonic()
    _run(attempt, commit=commit)
    seconds = time.monotonic() - began
    if isinstance(attempt.error, KeyboardInterrupt):
        raise attempt.error
    assert attempt.finished is not None
    return ForegroundRun(
        outcome=attempt.finished.outcome,
        error=attempt.error,
        context=attempt.here(),
        seconds=seconds,
    )


def _run(attempt: Attempt, *, commit: bool) -> None:
    if not commit:
        with _rolled_back():
            run_here(attempt)
    elif attempt.declaration.policy.atomic:
        with suppress(_Undo), transaction.atomic(using=conf.database):
            run_here(attempt)
            if attempt.error is not None:
                raise _Undo
    else:
        run_here(attempt)


@contextmanager
def _rolled_back() -> Iterator[None]:
    """Undo what is written to any database in the block."""
    with suppress(_Undo), ExitStack() as stack:
        for alias in connections:
            block = transaction.atomic(using=alias)
            block._from_testcase = True  # type: ignore[attr-defined]  # a handler's may be durable
            stack.enter_context(block)
        yield
        raise _Undo
