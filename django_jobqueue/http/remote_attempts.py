"""Attempts of remote workers, whose mistakes are problems of the API."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import InvalidResult
from django_jobqueue.http.problems import Problem
from django_jobqueue.remote.held_attempts import HeldAttempts, Reported, in_django
from django_jobqueue.store import endpoint_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue.finish import Holder
from django_jobqueue.store.remote_workers import HeldJob, RemoteWorker, held

# Between our looking and our writing an attempt is handed over, at most once.
TRIES: Final = 3

__all__ = ["Attempts", "Claim", "Reported", "end_delivered", "stale_fence"]


class Attempts(HeldAttempts):
    """Ends attempts of one remote worker."""

    def __init__(self, db: DjangoDatabase, worker: RemoteWorker) -> None:
        holder = Holder(worker.id, worker.name, worker.release)
        super().__init__(in_django(db), holder, "remote worker")

    def end(self, held: HeldJob, reported: Reported) -> None:
        """End this attempt as its worker says. Raises Problem: if the worker does not
        hold the job any more, and for a result that cannot be stored."""
        try:
            is_written = self.end_as(held, reported)
        except InvalidResult as error:
            raise invalid_result(error) from None
        if not is_written:
            raise stale_fence()


class Claim(NamedTuple):
    """Which claim of a job an outcome is of: its fence, or else the attempt."""

    fence: int | None
    attempt: int | None

    def is_of(self, fence: int, attempt: int) -> bool:
        """Whether it is the claim with this fence, which began this attempt.

        An attempt that was given back, or that crashed, is counted anew, and then its
        number means several claims. Raises Problem.
        """
        if self.fence is not None:
            return self.fence == fence
        if self.attempt != attempt:
            return False
        if fence != attempt:
            raise Problem(
                "fence_required",
                "The job was claimed more often than its attempts are counted. Send "
                "the fence that came with it.",
            )
        return True


def end_delivered(
    db: DjangoDatabase, id: UUID, job_type: str, claim: Claim, reported: Reported
) -> None:
    """End an attempt as the endpoint says that the job was sent to, whether it is
    handed over by now or our worker still has it. Raises Problem."""
    for _ in range(TRIES):
        holder = endpoint_rows.holder_of(db, id)
        if holder is None or holder.job_type != job_type:
            raise stale_fence()
        if not claim.is_of(holder.fence, holder.attempt):
            raise stale_fence()
        declaration = registry.get(job_type)
        if not (holder.is_endpoint or (declaration and declaration.endpoint)):
            raise Problem(
                "not_remote", "This job was sent to no endpoint. Name your worker."
            )
        attempts = HeldAttempts(
            in_django(db),
            Holder(holder.worker, holder.name, holder.release),
            "endpoint",
        )
        jobs = held(db, holder.worker, [id])
        try:
            if any(attempts.end_as(one, reported) for one in jobs):
                return
        except InvalidResult as error:
            raise invalid_result(error) from None
    raise stale_fence()


def invalid_result(error: InvalidResult) -> Problem:
    """The problem of a result that cannot be stored."""
    return Problem("invalid_parameter", f"result: {error}")


def stale_fence() -> Problem:
    """The problem of a worker that ends what it does not hold."""
    return Problem(
        "stale_fence",
        "The worker does not hold this job with this fence: the outcome was written, "
        "or the job was taken from it.",
    )
