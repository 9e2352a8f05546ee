"""Attempts of remote workers, whose mistakes are problems of the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.remote import endpoint_rows
from django_jobqueue.contrib.remote.held_attempts import (
    HeldAttempts,
    Reported,
    in_django,
    left_of,
)
from django_jobqueue.contrib.remote.remote_workers import HeldJob, RemoteWorker, held
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import InvalidResult
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.finish import Holder
from django_jobqueue.store.rows import ClaimedJob

# Between our looking and our writing an attempt is handed over, at most once.
TRIES: Final = 3


def attempts_of(db: DjangoDatabase, worker: RemoteWorker) -> HeldAttempts:
    """Those of one remote worker."""
    holder = Holder(worker.id, worker.name, worker.release)
    return HeldAttempts(in_django(db), holder, "remote worker")


def end(attempts: HeldAttempts, held: HeldJob, reported: Reported) -> None:
    """End this attempt as its worker says. Raises Problem: if the worker does not hold
    the job any more, and for a result that cannot be stored."""
    if not _ended(attempts, held, reported):
        raise stale_fence()


class Claim(NamedTuple):
    """Which claim of a job an outcome is of: its fence; or, from an endpoint that knows
    no fence, the attempts that were left as it was sent the job."""

    fence: int | None
    left: int | None

    def is_of(self, held: HeldJob) -> bool:
        """True if the job is held by this claim. A job that was sent again before its
        attempt ended has as many left: whoever says so has done it, too."""
        if self.fence is not None:
            return self.fence == held.job.fence
        return self.left is not None and self.left == left_of(held)


def end_delivered(
    db: DjangoDatabase,
    id: UUID,
    may_end: Callable[[ClaimedJob], bool],
    claim: Claim,
    reported: Reported,
) -> None:
    """End an attempt as the endpoint says that the job was sent to, whether it is
    handed over by now or our worker still has it. Raises Problem."""
    for _ in range(TRIES):
        holder = endpoint_rows.holder_of(db, id)
        if holder is None:
            break
        for one in held(db, holder.worker, [id]):
            if not (may_end(one.job) and claim.is_of(one)):
                raise stale_fence()
            declaration = registry.get(one.job.job_type)
            if not (holder.is_endpoint or (declaration and declaration.endpoint)):
                raise Problem(
                    "not_remote", "This job was sent to no endpoint. Name your worker."
                )
            by = Holder(holder.worker, holder.name, holder.release)
            attempts = HeldAttempts(in_django(db), by, "endpoint")
            if _ended(attempts, one, reported):
                return
    raise stale_fence()


def _ended(attempts: HeldAttempts, held: HeldJob, reported: Reported) -> bool:
    """End this attempt; False if its holder does not hold it any more. Raises Problem
    for a result that cannot be stored."""
    try:
        return attempts.end_as(held, reported)
    except InvalidResult as error:
        raise Problem("invalid_parameter", f"result: {error}") from None


def stale_fence() -> Problem:
    """The problem of a worker that ends what it does not hold."""
    return Problem(
        "stale_fence",
        "The worker does not hold this job with this fence: the outcome was written, "
        "or the job was taken from it.",
    )
