"""Remote workers: programs that claim jobs, do them, and say what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Body, Path

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas, type_routes
from django_jobqueue.contrib.http.access import (
    caller_of,
    may_do,
    refused,
    require,
    require_each,
)
from django_jobqueue.contrib.http.callers import Caller, identity_of
from django_jobqueue.contrib.http.endpoint import answer, endpoint
from django_jobqueue.contrib.http.job_objects import (
    STATUS_OF,
    parse_job_id,
    unknown_job_type,
)
from django_jobqueue.contrib.http.long_polls import long_poll
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.schemas import job_id
from django_jobqueue.contrib.http.token_scopes import Scope
from django_jobqueue.contrib.remote import remote_workers, worker_schemas
from django_jobqueue.contrib.remote.held_attempts import Reported, told
from django_jobqueue.contrib.remote.remote_attempts import (
    Claim,
    attempts_of,
    end,
    end_delivered,
    stale_fence,
)
from django_jobqueue.contrib.remote.remote_claims import Claims, lost
from django_jobqueue.contrib.remote.remote_workers import (
    HeldJob,
    NewRemoteWorker,
    RemoteWorker,
)
from django_jobqueue.domain import key_limits
from django_jobqueue.domain.name_patterns import EVERY
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import JobNotFound
from django_jobqueue.execution.signal_sender import announce_rescued
from django_jobqueue.operations.audit_log import record
from django_jobqueue.store import find as store_find
from django_jobqueue.store import job_types, worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import reports, rescue
from django_jobqueue.store.queue.reports import Report
from django_jobqueue.store.queue.rescue import BATCH, Rescued
from django_jobqueue.store.rows import ClaimedJob
from django_jobqueue.text.json_reading import object_of, read_json

POLL_SECONDS: Final = 20  # the `wait` that workers are advised to send
PAUSE_SECONDS: Final = 2.0  # between claims that find nothing and do not wait
LEFT: Final = "its remote worker left"
MISSING: Final = "its remote worker does not know of it"
NO_RESCUER: Final = (
    "No runworkers process is alive: if this worker dies, nobody gives its jobs to "
    "others. Start one, if only for another queue."
)

operation = partial(
    endpoint, scope=Scope.WORK, permission="jobqueue.work_remotely", tag="workers"
)
type_routes.creating(type_routes.create_job_type)
WorkerId = Annotated[int, Path(ge=1, le=worker_schemas.BIGGEST)]
ClaimBody = Annotated[worker_schemas.Claim | None, Body(None)]
RenewalBody = Annotated[worker_schemas.Renewal | None, Body(None)]


@operation(
    "POST",
    "/v1/workers",
    answers={201: worker_schemas.RemoteWorker},
    problems=("job_type_not_found", "not_remote", "too_many_workers"),
)
def register_worker(
    request: HttpRequest, body: worker_schemas.NewRemoteWorker
) -> HttpResponse:
    """Register a program that does jobs of these types.

    Only the caller that registered a worker may use it.
    """
    require_each(request, body.job_types, body.queues or [EVERY])
    db, caller = DjangoDatabase(), caller_of(request)
    _check_remote(db, caller, body.job_types)
    worker = remote_workers.register(
        db,
        NewRemoteWorker(
            name=body.name,
            owner=identity_of(caller),
            release=body.release,
            job_types=body.job_types,
            queues=body.queues,
            slots=body.slots,
            lease=body.lease_seconds,
        ),
    )
    if worker is None:
        most = remote_workers.MOST_WORKERS
        raise Problem("too_many_workers", f"A caller has at most {most:,} workers.")
    made = worker_schemas.RemoteWorker(
        id=worker,
        lease_seconds=body.lease_seconds,
        poll_seconds=POLL_SECONDS if conf.http_long_polls else 0,
        notice=None if remote_workers.has_rescuer(db) else NO_RESCUER,
    )
    return answer(201, made)


@operation(
    "POST",
    "/v1/workers/{worker}/claim",
    answers={200: worker_schemas.ClaimedJobs},
    problems=("worker_lost",),
)
def claim_jobs(request: HttpRequest, worker: WorkerId, body: ClaimBody) -> HttpResponse:
    """Claim jobs, the most urgent first; with `wait` as soon as there are some.

    Renews the lease. A worker that holds nothing and wants one job may be given one
    that crashed its workers before, and so has to run alone.
    """
    db, wanted = DjangoDatabase(), body or worker_schemas.Claim()
    owner = identity_of(caller_of(request))
    alive = _renewed(db, worker, owner)
    claims = Claims(db, alive, owner, lambda name, queue: may_do(request, name, queue))
    attempts_of(db, alive).end_late(remote_workers.held(db, worker))
    jobs = claims.take(wanted.limit)
    has_waited = False
    if not jobs and wanted.wait and not alive.is_to_stop:
        with long_poll(owner) as poll:
            if poll is not None:
                jobs = claims.wait(wanted.limit, wanted.wait, poll)
                has_waited = not poll.is_over
    claimed = worker_schemas.ClaimedJobs(
        jobs=[_claimed(one) for one in jobs],
        asked=claims.asked,
        next_due_seconds=claims.due_in,
        poll_seconds=0 if jobs or has_waited else PAUSE_SECONDS,
    )
    return answer(200, claimed)


@operation(
    "PUT",
    "/v1/workers/{worker}",
    answers={200: worker_schemas.Renewed},
    problems=("worker_lost",),
)
def renew_worker(
    request: HttpRequest, worker: WorkerId, body: RenewalBody
) -> HttpResponse:
    """Renew the lease, say what runs, and learn what is asked."""
    db, reported = DjangoDatabase(), body or worker_schemas.Renewal()
    running = {parse_job_id(id) for id in reported.running or ()}
    progress = {parse_job_id(id): one for id, one in reported.progress.items()}
    alive = _renewed(db, worker, identity_of(caller_of(request)))
    held = remote_workers.held(db, worker)
    held = attempts_of(db, alive).end_late(held)
    if reported.running is not None:
        held = _without_missing(db, alive, held, running)
    _write_progress(db, alive, held, progress)
    ours = {one.job.id for one in held}
    cancel = {one.job.id for one in held if one.is_unwanted} | (running - ours)
    renewed = worker_schemas.Renewed(
        lease_seconds=alive.lease,
        asked=alive.asked,
        cancel=[job_id(id) for id in sorted(cancel)],
    )
    return answer(200, renewed)


@operation(
    "DELETE",
    "/v1/workers/{worker}",
    answers={200: worker_schemas.Left},
    problems=("worker_lost",),
)
def leave_worker(request: HttpRequest, worker: WorkerId) -> HttpResponse:
    """End a worker: its jobs go back to the queue, their attempts unspent.

    At-most-once jobs are archived as failed: nobody knows how far they came.
    """
    db, owner = DjangoDatabase(), identity_of(caller_of(request))
    if remote_workers.end(db, worker, owner, how="it left") is None:
        raise lost()
    rescued = _give_back(db, worker, None, LEFT)
    counts = {one.status: 0 for one in rescued}
    for one in rescued:
        counts[one.status] += 1
    worker_rows.record_rescued(db, worker, counts)
    return answer(200, worker_schemas.Left(released=len(rescued)))


@operation(
    "POST",
    "/v1/jobs/{job_type}/{id}",
    answers={200: worker_schemas.Accepted},
    problems=(
        *("invalid_prefix", "invalid_uuid", "worker_lost", "stale_fence"),
        "not_remote",
    ),
)
def end_attempt(
    request: HttpRequest,
    job_type: schemas.PathName,
    id: schemas.PathId,
    body: worker_schemas.AttemptStatus,
) -> HttpResponse:
    """Say what came of an attempt.

    The rules are those of every worker: a failed attempt is retried as the job type
    says. Sent again, it is refused with `stale_fence`; so whoever got no answer may
    send it again. An endpoint that a job was sent to is no worker, and names none.

    An endpoint that knows no fence sends back as `attempt` the `attempts` that it was
    sent.
    """
    require(request, job_type=job_type)
    _check_hold(request, job_type, body)
    key, db = parse_job_id(id), DjangoDatabase()

    def may_end(job: ClaimedJob) -> bool:
        return job.job_type == job_type and may_do(request, job_type, job.queue)

    if body.worker is None:
        if body.fence is None and body.attempt is None:
            raise Problem("missing_parameter", "fence: field required")
        claim = Claim(body.fence, body.attempt)
        end_delivered(db, key, may_end, claim, _reported(body))
    else:
        worker = remote_workers.find(db, body.worker, identity_of(caller_of(request)))
        if worker is None:
            raise lost()
        if body.fence is None:
            raise Problem("missing_parameter", "fence: field required")
        held = remote_workers.held(db, worker.id, [key])
        if not any(may_end(one.job) and one.job.fence == body.fence for one in held):
            raise stale_fence()
        end(attempts_of(db, worker), held[0], _reported(body))
    if body.held_seconds is not None:
        details = {"job_type": job_type, "id": str(key), "seconds": body.held_seconds}
        record("hold", caller_of(request).name, 1, details)
    job = store_find.find(db, key)
    if job is None:  # pruned already
        raise JobNotFound(key)
    status = STATUS_OF.get(job.status, job.status)
    return answer(200, worker_schemas.Accepted(id=job_id(key), status=status))


def _check_hold(
    request: HttpRequest, job_type: str, body: worker_schemas.AttemptStatus
) -> None:
    """Raises Problem for a caller that may not hold back all that share a rate, which
    can be jobs of any queue, or not for so long."""
    if body.held_seconds is None:
        return
    declaration = registry.get(job_type)
    limit = declaration and key_limits.limit_name(declaration)
    shares = limit not in (None, job_type)  # with other job types
    if not may_do(request, EVERY if shares else job_type, EVERY):
        raise refused(request, f"hold: all that share the rate of {job_type!r}")
    if body.held_seconds > worker_schemas.LONGEST_HOLD:
        most = f"{worker_schemas.LONGEST_HOLD:,}"
        raise Problem("invalid_parameter", f"retry_after: with hold at most {most} s.")


def _renewed(db: DjangoDatabase, id: int, owner: str) -> RemoteWorker:
    worker = remote_workers.renew(db, id, owner)
    if worker is None:
        raise lost()
    return worker


def _check_remote(db: DjangoDatabase, caller: Caller, names: Sequence[str]) -> None:
    """Raises Problem for a type that Python handlers do, or that there is
    not."""
    declared = [one for name in names if (one := registry.get(name)) and one.is_remote]
    job_types.declare(db, declared, waits=False)
    remote = remote_workers.remote_types(db, names)
    for name in names:
        if name in remote:
            continue
        if job_types.stored_handler(db, name) is None:
            raise unknown_job_type(name, caller)
        raise Problem(
            "not_remote",
            f"Jobs of {name} have a handler in Python. Remote workers do the job types "
            "of remote_job(), and those that no code declares.",
        )


def _claimed(held: HeldJob) -> worker_schemas.ClaimedJob:
    job = held.job
    made: worker_schemas.ClaimedJob = worker_schemas.ClaimedJob.model_construct(
        id=job_id(job.id),
        name=job.job_type,
        queue=job.queue,
        data=read_json(job.data),
        attempt=job.attempts,
        fence=job.fence,
        timeout_seconds=held.timeout or None,
        metadata=object_of(job.metadata),
    )
    return made


def _reported(body: worker_schemas.AttemptStatus) -> Reported:
    error = body.error or worker_schemas.AttemptError()
    return Reported(
        status=body.status,
        result=body.result,
        error_class=error.error_class,
        message=error.message,
        traceback=error.traceback,
        is_retryable=body.retryable,
        retry_after=body.retry_after,
        holds=body.hold,
    )


def _without_missing(
    db: DjangoDatabase,
    worker: RemoteWorker,
    held: Sequence[HeldJob],
    running: set[UUID],
) -> list[HeldJob]:
    """Give away jobs that their worker has had for a whole lease and does not know of:
    the answer to its claim was lost."""
    missing = {
        one.job.id
        for one in held
        if one.job.id not in running and one.ran > worker.lease
    }
    if missing:
        _give_back(db, worker.id, [*missing], MISSING)
    return [one for one in held if one.job.id not in missing]


def _give_back(
    db: DjangoDatabase, worker: int, only: Sequence[UUID] | None, reason: str
) -> list[Rescued]:
    """Take these jobs from the worker, as from one that was stopped on purpose."""
    rescued: list[Rescued] = []
    while True:
        batch: list[Rescued] = db.in_transaction(
            lambda: rescue.rescue_some(
                db, [worker], crashed=False, reason=reason, only=only
            )
        )
        rescued += batch
        if len(batch) < BATCH:
            announce_rescued(rescued, reason)
            return rescued


def _write_progress(
    db: DjangoDatabase,
    worker: RemoteWorker,
    held: Sequence[HeldJob],
    progress: dict[UUID, worker_schemas.Progress],
) -> None:
    written = [
        Report(
            one.job.id,
            one.job.fence,
            one.job.attempts,
            one.ran,
            told(one, reported.done, reported.total, reported.note),
        )
        for one in held
        if (reported := progress.get(one.job.id)) is not None
    ]
    if written:
        reports.write(db, worker.name, written)
