"""Runs jobs when they are enqueued, in the modes ``immediate`` and ``on_commit``.

Each has one attempt. Like a worker, it commits an atomic handler's effects as a whole
or not at all; unlike one, it lets the caller know what the handler raised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from django.db import connections, transaction

from django_jobqueue.conf import conf
from django_jobqueue.domain import followers
from django_jobqueue.domain.arguments import from_json
from django_jobqueue.domain.followers import Follower
from django_jobqueue.domain.ids import new_id
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.enqueueing.immediate_jobs import MemoryRecord, memory
from django_jobqueue.enqueueing.stored_options import follower_job
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.inline import has_failed, run_here, unclaimed
from django_jobqueue.execution.transaction_guard import TransactionGuard
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.rows import Job

MESSAGE_LENGTH: Final = 500  # of an archived job
STATUS: Final[Mapping[Verb, str]] = {
    Verb.SUCCEED: "succeeded",
    Verb.FAIL: "failed",
    Verb.CANCEL: "cancelled",
    Verb.EXPIRE: "expired",
}


def run(record: MemoryRecord) -> None:
    """Run the one attempt of this job.

    Raises what the handler raised, but for ``Retry`` and ``Snooze``, which leave the
    job queued, and ``Cancel``.
    """
    began = datetime.now(UTC)
    record.job = replace(record.job, status="running", attempts=1, started_at=began)
    attempt = unclaimed(
        record.job, record.declaration, record.text, record.new.options.get("metadata")
    )
    finished = _run(attempt)
    failed = has_failed(attempt.error, finished.outcome)
    record.job = _after(
        record.job, finished.outcome, failed=failed, worker=attempt.worker
    )
    errors = _follow(record) if record.job.is_over else []
    if failed and attempt.error is not None:
        raise attempt.error
    if errors:
        raise errors[0]


class _Undo(Exception):
    """Rolls a transaction back."""


def _run(attempt: Attempt) -> Finished:
    if not attempt.declaration.policy.atomic:
        return run_here(attempt)
    wrapper = connections[conf.database]
    with suppress(_Undo), transaction.atomic(using=conf.database):
        with wrapper.execute_wrapper(TransactionGuard(wrapper)):
            finished = run_here(attempt)
        if attempt.error is not None:
            raise _Undo
    return finished


def _after(job: Job, outcome: Outcome, *, failed: bool, worker: str) -> Job:
    """The job when its attempt has ended."""
    status = "failed" if failed else STATUS.get(outcome.verb, "queued")
    if status == "queued":
        return replace(job, status=status, started_at=None)
    done = replace(job, status=status, finished_at=datetime.now(UTC), worker=worker)
    if outcome.result is not None:
        done.result = from_json(outcome.result)
    done.error_message = outcome.reason[:MESSAGE_LENGTH]
    if outcome.failure is not None:
        done.error_class = outcome.failure.error_class
        done.error_message = outcome.failure.message[:MESSAGE_LENGTH]
        done.fingerprint = outcome.failure.fingerprint.value
    return done


def _follow(record: MemoryRecord) -> list[Exception]:
    """Enqueue the followers of this job, as ``jobqueue_follow`` does; return the errors
    of those that fail here and now."""
    errors: list[Exception] = []
    named = json.loads(record.new.followers or "null")
    for follower, option in followers.on_status(named, record.job.status).items():
        declaration = registry.get(follower.job_type)
        if declaration is not None:
            try:
                _enqueue(follower, option, declaration, record.job)
            except Exception as error:
                errors.append(error)
    return errors


def _enqueue(
    follower: Follower, option: str, declaration: Declaration, finished: Job
) -> None:
    new = follower_job(
        follower, declaration, enqueued_by=option, metadata=finished.metadata
    )
    values = {
        "job": str(finished.id),
        "status": finished.status,
        "result": finished.result,
        "error_class": finished.error_class,
        "error_message": finished.error_message,
    }
    names = followers.arguments_of(declaration.parameters)
    data = {name: values[name] for name in names}
    memory.take(new, declaration, new_id(), data, json.dumps(data))
