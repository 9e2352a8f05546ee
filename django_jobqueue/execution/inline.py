"""Runs attempts that no worker claimed, in the caller's thread."""

from __future__ import annotations

import json
import os
import time
from contextvars import copy_context
from typing import Final

from asgiref.sync import async_to_sync

from django_jobqueue.domain.policy import attempts_in_force, time_in_force
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import Retry
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import arun, run
from django_jobqueue.execution.observed_attempts import aobserved, observed
from django_jobqueue.processes import identity
from django_jobqueue.store.queue.finish import Finished
from django_jobqueue.store.rows import ClaimedJob, Job

FENCE: Final = 0  # of no claim


def unclaimed(
    job: Job, declaration: Declaration, text: str, metadata: str | None = None
) -> Attempt:
    """The attempt of this job that its ``attempts`` says; ``text`` is the JSON of its
    data, and ``metadata`` of that."""
    policy = declaration.policy
    allowed = time_in_force(job.timeout, policy.time_allowed, None)
    seconds = None if allowed is None else allowed.total_seconds()
    return Attempt(
        job=ClaimedJob(
            id=job.id,
            job_type=job.job_type,
            queue=job.queue,
            priority=job.priority,
            data=text,
            attempts=job.attempts,
            max_attempts=job.max_attempts,
            crashes=job.crashes,
            fence=FENCE,
            due=job.run_after.timestamp(),
            created=job.created_at.timestamp(),
            waited=0.0,
            expires_in=None,
            metadata=metadata,
            timeout=seconds,
            backoff=None if job.backoff is None else json.dumps(job.backoff),
        ),
        declaration=declaration,
        max_attempts=attempts_in_force(
            policy.delivery, job.max_attempts, policy.attempts_allowed, None
        ),
        timeout=seconds,
        worker=identity.name_of(os.getpid()),
        claimed=time.monotonic(),
    )


def run_here(attempt: Attempt) -> Finished:
    """Run it in this thread, whatever kind its handler is; an async one reaches the
    database through this thread's connections. What it sets in context variables ends
    with it, as in a worker."""
    is_async = attempt.declaration.is_async
    run_it = async_to_sync(aobserved(arun)) if is_async else observed(run)
    return copy_context().run(run_it, attempt)


def has_failed(error: BaseException | None, outcome: Outcome) -> bool:
    """True if the attempt failed, and not by a requested retry."""
    if outcome.verb is Verb.RETRY:
        return not isinstance(error, Retry)
    return outcome.verb is Verb.FAIL
