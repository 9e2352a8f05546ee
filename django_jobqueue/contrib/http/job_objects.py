"""Jobs and job types as the API shows them."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.contrib.http import schemas, type_schemas
from django_jobqueue.contrib.http.access import may_know, may_read_data
from django_jobqueue.contrib.http.callers import Caller
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.contrib.http.schemas import ID_PATTERN, job_id
from django_jobqueue.domain.policy import (
    attempts_in_force,
    attempts_left,
    limit_in_force,
)
from django_jobqueue.domain.registry import registry
from django_jobqueue.exceptions import UnknownJobType
from django_jobqueue.models import JobType
from django_jobqueue.stats.cached import CachedValue
from django_jobqueue.stats.pauses import is_paused
from django_jobqueue.store import find as store_find
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.rows import Job
from django_jobqueue.text.redaction import mask_json, mask_text, secrets_in

MAX_AGE: Final = 1.0  # seconds that the row of a job type is taken as it was read
STATUS_OF: Final = {"running": "in-progress"}
# The attempt that runs, or succeeded, is not spent.
UNSPENT: Final = ("running", "succeeded")
IDS: Final = "job_"
_JOB_ID: Final = re.compile(ID_PATTERN)


class TypeFacts(NamedTuple):
    """The parts of a job's type that the API needs."""

    queue: str
    delivery: str
    max_attempts: int | None
    max_attempts_override: int | None
    priority: int
    priority_override: int | None
    timeout: timedelta | None
    timeout_override: timedelta | None
    sensitive: tuple[str, ...]


_cached: Final = CachedValue[TypeFacts | None]()


def facts_of(name: str) -> TypeFacts | None:
    """This job type; None if it has no row (yet)."""
    return _cached.get(name, MAX_AGE, lambda: _read(name))


def forget_facts() -> None:
    """Read them again."""
    _cached.forget()


def _read(name: str) -> TypeFacts | None:
    columns = (
        *("queue", "delivery", "max_attempts", "max_attempts_override"),
        *("priority", "priority_override", "timeout", "timeout_override", "sensitive"),
    )
    rows = JobType.objects.using(conf.database).filter(pk=name)
    values = rows.values(*columns).first()
    if values is None:
        return None
    sensitive = values.pop("sensitive")
    names = map(str, sensitive) if isinstance(sensitive, list) else ()
    return TypeFacts(**values, sensitive=tuple(names))


def unknown_job_type(name: str, caller: Caller, *, follows: str = "") -> Problem:
    """The problem, with the near names of those that the caller may know."""
    known = store_find.known_names(DjangoDatabase(), caller.job_types)
    near = registry.near(name, known, may_name=partial(may_know, caller))
    error = UnknownJobType(name, near, follows=follows)
    return Problem("job_type_not_found", str(error))


def is_job_id(name: str) -> bool:
    """True if this is the id of a job, and so the name of no job type."""
    return _JOB_ID.fullmatch(name) is not None


def parse_job_id(text: str) -> UUID:
    """The UUID in ``job_<uuid>``. Raises Problem."""
    if not text.startswith(IDS):
        raise Problem("invalid_prefix", f"The id must begin with {IDS}.")
    if not _JOB_ID.fullmatch(text):
        raise Problem("invalid_uuid", f"After {IDS} there must be a UUID with dashes.")
    return UUID(text.removeprefix(IDS))


def job_object(job: Job, caller: Caller) -> schemas.Job:
    """The job as this caller may see it."""
    facts = facts_of(job.job_type)
    most = _max_attempts(job, facts)
    attempt = job.attempts + (job.status not in UNSPENT)
    shown = {
        "id": job_id(job.id),
        "name": job.job_type,
        "status": STATUS_OF.get(job.status, job.status),
        "attempts": attempts_left(most, attempt),
        "attempt": job.attempts,
        "max_attempts": most,
        "crashes": job.crashes,
        "queue": job.queue,
        "priority": job.priority,
        "tags": list(job.tags),
        "created_at": job.created_at,
        "run_after": job.run_after,
        "expires_at": job.expires_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "replay_of": None if job.replay_of is None else job_id(job.replay_of),
        "error_class": job.error_class or None,
    }
    if may_read_data(caller, job_type=job.job_type, queue=job.queue):
        shown |= contents_of(job)
    made: schemas.Job = schemas.Job.model_construct(**shown)
    return made


def job_type_object(row: JobType) -> type_schemas.JobType:
    """The job type with what is in force."""
    timeout = row.timeout if row.timeout_override is None else row.timeout_override
    priority = row.priority_override
    made: type_schemas.JobType = type_schemas.JobType.model_construct(
        id=row.name,
        name=row.name,
        delivery_strategy=row.delivery,
        attempts=attempts_in_force(
            row.delivery, None, row.max_attempts, row.max_attempts_override
        ),
        concurrency=limit_in_force(row.concurrency, row.concurrency_override),
        queue=row.queue,
        priority=row.priority if priority is None else priority,
        timeout=timeout.total_seconds() if timeout else None,
        is_paused=is_paused(row),
        description=row.description,
        created_at=row.created_at,
    )
    return made


def _max_attempts(job: Job, facts: TypeFacts | None) -> int | None:
    if facts is None:
        return job.max_attempts
    declared, override = facts.max_attempts, facts.max_attempts_override
    return attempts_in_force(facts.delivery, job.max_attempts, declared, override)


def contents_of(job: Job) -> dict[str, Any]:
    """The contents of a job as the API shows them, secrets masked."""
    facts = facts_of(job.job_type)
    sensitive = facts.sensitive if facts else ()
    secrets = secrets_in(job.data, sensitive)
    return {
        "data": mask_json(job.data, sensitive, secrets),
        "metadata": mask_json(job.metadata, sensitive, secrets),
        "result": mask_json(job.result, sensitive, secrets),
        "error_message": mask_text(job.error_message, secrets),
    }
