"""What ``using`` and ``enqueue`` say about the jobs to be enqueued."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol, TypedDict
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.job_options import OF_JOB, option_of_types
from django_jobqueue.domain.option_checks import reusable
from django_jobqueue.domain.policy import Policy, Unset
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.retries import Backoff
from django_jobqueue.store.queue.insert import NewJob
from django_jobqueue.text import timezones
from django_jobqueue.text.foreign_words import option_hint

TAGS_BYTES: Final = 10_000


class Declared(Protocol):
    """A handler."""

    @property
    def declaration(self) -> Declaration:
        """What ``@job`` declared."""
        ...


class TypeOptions(TypedDict, total=False):
    """What ``@job`` and ``@task`` say about all jobs of a type in the same words."""

    max_attempts: int | None | Unset
    timeout: timedelta | float | None | Unset
    delivery: str | Delivery
    concurrency: int | None
    atomic: bool
    expires_in: timedelta | float | None
    max_crashes: int
    retry_for: tuple[type[BaseException], ...]
    permanent: tuple[type[BaseException], ...]
    sensitive: Iterable[str]
    unique: bool | Iterable[str]
    unique_until: Literal["finished", "started"]
    on_duplicate: Literal["raise", "return"]
    capture: Iterable[Literal["language", "time_zone"]] | Unset
    middleware: Iterable[str | Callable[..., Any]]


class HandlerOptions(TypeOptions, total=False):
    """What ``@job`` says, besides ``name`` and ``takes_context``."""

    queue: str
    priority: int
    backoff: str | timedelta | float | Backoff
    on_complete: str | Declared | None


class JobOptions(TypedDict, total=False):
    """What can be said of a job when it is enqueued; ``None`` leaves it to its type."""

    run_after: datetime | timedelta | None
    """Not before this moment, or this wait from now."""
    expires_at: datetime | None
    """Not started after this moment."""
    expires_in: timedelta | float | None
    """Not started later than this after it is due."""
    priority: int | None
    """From -100 to 100, greater is sooner."""
    queue: str | None
    """The queue that it waits in."""
    id: UUID | str | None
    """Its id: a job that has this id already is returned instead."""
    tags: Iterable[str]
    """Strings that are kept with it."""
    enqueued_by: str | None
    """Who enqueues it; at most 150 characters."""
    max_attempts: int | None
    """How many attempts this job has, the first one included."""
    metadata: Mapping[str, Any] | None
    """A JSON object that travels with it, beside its data."""
    on_complete: str | Declared | None
    """The handler, or job type, of a job that is enqueued when this one is over."""
    unique_key: str | None
    """No other job of this type with this text is enqueued meanwhile."""
    unique_until: Literal["finished", "started"] | None
    """Until when: until it is over, or until it is claimed."""
    on_duplicate: Literal["raise", "return"] | None
    """What becomes of a duplicate: DuplicateJob, or the job that is there."""
    using: str | None
    """The alias of the database, instead of ``JOBQUEUE["DATABASE"]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The same as it is kept. None leaves it to the type."""

    run_after: datetime | timedelta | None = None
    expires_at: datetime | None = None
    expires_in: timedelta | None = None
    priority: int | None = None
    queue: str | None = None
    id: UUID | None = None
    tags: tuple[str, ...] = ()
    enqueued_by: str | None = None
    max_attempts: int | None = None
    metadata: Mapping[str, Any] | None = None
    on_complete: str | None = None
    unique_key: str | None = None
    unique_until: str | None = None
    on_duplicate: str | None = None
    using: str | None = None

    def but(self, given: Mapping[str, Any], handler: str = "handler") -> Options:
        """These options, and what is ``given`` instead. Raises InvalidArguments, and
        TypeError for an option that there is not; ``handler`` is its name there."""
        kept = {}
        for name, value_or_generator in given.items():
            value = reusable(value_or_generator)
            option = OF_JOB.get(name)
            if option is None:
                hint = option_of_types(name) or option_hint(name, OF_JOB, handler)
                raise TypeError(f"There is no option {name!r} of a job.{hint}")
            if value is not None and (problem := option.problem(value)):
                raise InvalidArguments(f"{name} {problem}")
            kept[name] = option.normal(value)
        options = replace(self, **kept)
        if options.expires_at is not None and options.expires_in is not None:
            raise InvalidArguments(
                "expires_at and expires_in are two moments after which the job is not "
                "started; give one of them."
            )
        if problem := options._never_due():
            raise InvalidArguments(problem)
        return options

    def _never_due(self) -> str | None:
        """Why a job could not be started: it would expire before it is due."""
        after, end = self.run_after, self.expires_at
        if after is None or end is None:
            return None
        if isinstance(after, timedelta):
            if not after:
                return None  # what expired a moment ago does so as if it had waited
            after = timezones.now() + after
        return None if after < end else expires_first(after, end)

    def new_job(self, job_type: str, declaration: Declaration | None) -> NewJob:
        """What is to be inserted, from these options and the code's policy. Raises
        InvalidArguments for what contradicts it."""
        wait = self.run_after if isinstance(self.run_after, timedelta) else timedelta(0)
        moment = None if isinstance(self.run_after, timedelta) else self.run_after
        policy = declaration.policy if declaration else None
        self._check(job_type, policy)
        return NewJob(
            job_type=job_type,
            queue=self.queue or (policy.queue if policy else None),
            priority=self.priority,
            declared_priority=policy.priority if policy else None,
            run_after=moment,
            delay=wait,
            expires_at=self.expires_at,
            expires_in=self.expires_in or (policy.expires_in if policy else None),
            enqueued_by=self.enqueued_by,
            tags=self._tags_as_json(),
            max_attempts=self.max_attempts,
            metadata=self.metadata_as_json({}),
            on_complete=self.on_complete or (policy.on_complete if policy else None),
        )

    def metadata_as_json(self, captured: Mapping[str, Any]) -> str | None:
        """The JSON text of the metadata, what is captured included; None without."""
        metadata = {**captured, **(self.metadata or {})}
        if not metadata:
            return None
        return to_json(metadata, limit=conf.max_data_bytes, what="metadata")

    def _check(self, job_type: str, policy: Policy | None) -> None:
        once = policy is not None and policy.delivery == Delivery.AT_MOST_ONCE
        if once and self.max_attempts not in (None, 1):
            raise InvalidArguments(
                f"max_attempts must be 1: {job_type} is delivered at most once."
            )
        if self.on_complete is not None:
            problem = follower_problem(job_type, self.on_complete)
            if problem:
                raise InvalidArguments(f"on_complete {problem}")

    def _tags_as_json(self) -> str | None:
        if not self.tags:
            return None
        advice = "Use fewer, or shorter ones."
        return to_json(list(self.tags), limit=TAGS_BYTES, what="tags", advice=advice)


def follower_problem(job_type: str, follower: str) -> str | None:
    """Why jobs of this type cannot follow on one, in words that follow "on_complete".

    What is declared later than this is asked is not looked at.
    """
    if follower == job_type:
        return (
            f"must be another job type than {job_type!r}, which would follow on itself "
            "without end."
        )
    declaration = registry.get(follower)
    called = {"job": "", "status": ""}
    problem = declaration and declaration.parameters.problem(called)
    if problem:
        return f"must be a handler of (job, status), which it is called with: {problem}"
    return None


def expires_first(run_after: datetime, expires_at: datetime) -> str:
    """What is wrong with a job that expires before it is due."""
    return (
        f"expires_at must be later than run_after: the job would be due at "
        f"{run_after} and not be started after {expires_at}."
    )
