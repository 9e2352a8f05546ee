"""The options of ``@job``, ``using()`` and ``enqueue()``: their types and values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Literal, Protocol, TypedDict
from uuid import UUID

from django_jobqueue.conf import conf
from django_jobqueue.domain import followers
from django_jobqueue.domain.arguments import to_json
from django_jobqueue.domain.followers import CanFollow, Follower
from django_jobqueue.domain.job_options import OF_JOB, option_of_types
from django_jobqueue.domain.option_checks import reusable
from django_jobqueue.domain.per_key import PerKey
from django_jobqueue.domain.policy import Policy, Unset
from django_jobqueue.domain.rates import Rate
from django_jobqueue.domain.registry import Declaration, registry
from django_jobqueue.domain.retry_rules import RetryOption
from django_jobqueue.domain.states import Delivery
from django_jobqueue.domain.weights import weighing
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.observers import TRACE
from django_jobqueue.retries import Backoff, stored_form
from django_jobqueue.store.columns import OPTIONS
from django_jobqueue.store.queue.new_job import NewJob
from django_jobqueue.text import timezones
from django_jobqueue.text.foreign_words import option_hint

TAGS_BYTES: Final = 10_000
# Whether a duplicate may replace a job of another queue, for callers that have to do
# with some queues alone.
may_move: Final[ContextVar[bool]] = ContextVar("may_move", default=True)
_GIVEN: Final = attrgetter(*OPTIONS)  # half the time of a comprehension


class Declared(Protocol):
    """A handler: an object that ``@job`` returned."""

    @property
    def declaration(self) -> Declaration:
        """Its declaration."""
        ...


Followers = str | CanFollow | Sequence[str | CanFollow] | None


class TypeOptions(TypedDict, total=False):
    """The options of ``@job`` that ``@task`` takes in the same words."""

    max_attempts: int | None | Unset
    """How many attempts a job has; None is unlimited."""
    timeout: timedelta | float | None | Unset
    """How long one attempt may run, in seconds or as a timedelta; None is unlimited."""
    delivery: str | Delivery
    """``at_least_once``, or ``at_most_once``: never started twice."""
    concurrency: int | None
    """How many jobs run at once across the cluster; 0 pauses, None is unlimited."""
    rate: Rate | None
    """How many jobs start in any window of time, across the cluster."""
    per_key: PerKey | None
    """How many jobs of each key, such as each customer, run at once."""
    atomic: bool
    """Run the handler and its completion in one transaction."""
    expires_in: timedelta | float | None
    """How long after it is due a job may still be started."""
    max_crashes: int
    """A job whose worker died this often is archived as failed."""
    retry: RetryOption
    """Rules by exception class: False (not retried), True, a backoff, or a RetryRule.
    The nearest base class decides; other exceptions are retried."""
    sensitive: Iterable[str]
    """Keys of the data whose values are masked wherever they are shown."""
    indexed: Iterable[str]
    """Keys of the data, or paths such as "customer.id", by which archived jobs are
    found at once, however many there are."""
    summary: str | None
    """Shown for each job in lists, filled from its data: "order {order_id}"."""
    unique: bool | Iterable[str]
    """One job per data at a time; or the names of the parameters that count."""
    unique_until: Literal["finished", "started", "forever"] | timedelta | float
    """Until when a job is unique: until it is finished, until it is claimed, forever,
    or for this time, in seconds or as a timedelta, after its enqueue."""
    on_duplicate: Literal["raise", "return", "replace"]
    """A duplicate raises DuplicateJob, returns the job, or replaces its data while it
    waits."""
    debounce: timedelta | float
    """The job starts when there was no duplicate for this time, in seconds or as a
    timedelta, with the data of the last one."""
    debounce_max: timedelta | float
    """How long ``debounce`` may put a job off in all, in seconds or as a timedelta."""
    capture: Iterable[Literal["language", "time_zone", "tenant"]] | Unset
    """The handler inherits the enqueue's language, time zone or tenant."""
    middleware: Iterable[str | Callable[..., Any]]
    """Dotted paths, or callables; they run within those of the settings."""


class HandlerOptions(TypeOptions, total=False):
    """The options of ``@job``, besides ``name`` and ``takes_context``."""

    queue: str
    """The queue of its jobs."""
    priority: int
    """From -100 to 100; greater is sooner."""
    backoff: str | timedelta | float | Backoff
    """``exponential``, ``quartic``, ``decorrelated``, ``fixed``, ``immediate``,
    ``rickover``; a wait; or a function of (attempt) or (attempt, exception, job)."""
    on_success: Followers
    """The handler, or job type, of a job that is enqueued when a job of this type
    succeeds; or a list of them."""
    on_failure: Followers
    """The same for a job that fails for good, or expires."""
    on_complete: Followers
    """The same for a job that is finished, whatever its status."""


class OneJobOptions(TypedDict, total=False):
    """The options of one job alone, which its type cannot have; None is not given."""

    expires_at: datetime | None
    """The job is not started after this moment."""
    id: UUID | str | None
    """The job's id. If a job already has this id, the enqueue returns that job."""
    tags: Iterable[str]
    """Strings that are stored with the job."""
    enqueued_by: str | None
    """The user or program that enqueues the job; at most 1,000 characters."""
    metadata: Mapping[str, Any] | None
    """A JSON object that travels with the job, beside its data."""
    limit_key: str | None
    """The key that the job counts against, instead of the one from its arguments."""
    weight: int | None
    """The job's weight in a weighted rate, instead of the one from its arguments."""
    unique_key: str | None
    """While the job is unique, no other job of its type can have this key."""


@dataclass(frozen=True, kw_only=True)
class OneJobFields:
    """The same as fields of a task, which is equal to one with others."""

    __slots__ = ()

    expires_at: datetime | None = field(default=None, compare=False)
    id: UUID | str | None = field(default=None, compare=False)
    tags: Any = field(default=(), compare=False)
    enqueued_by: str | None = field(default=None, compare=False)
    metadata: dict[str, Any] | None = field(default=None, compare=False)
    limit_key: str | None = field(default=None, compare=False)
    weight: int | None = field(default=None, compare=False)
    unique_key: str | None = field(default=None, compare=False)


class JobOptions(OneJobOptions, total=False):
    """The options of one job, given at the enqueue; None leaves an option to the
    type."""

    run_after: datetime | timedelta | None
    """The job is due at this moment, or after this wait."""
    expires_in: timedelta | float | None
    """How long after it is due the job may still be started."""
    priority: int | None
    """From -100 to 100, greater is sooner."""
    queue: str | None
    """The job's queue."""
    max_attempts: int | None
    """How many attempts the job has, including the first."""
    timeout: timedelta | float | None
    """How long one attempt of the job may run, in seconds or as a timedelta."""
    backoff: str | timedelta | float | Callable[[int], Any] | None
    """The name of a policy, ``partial`` of one, or a wait; not your own function."""
    on_success: Followers
    """Followers of this job, instead of those that its type has for a success."""
    on_failure: Followers
    """The same for a failure or an expiry."""
    on_complete: Followers
    """The same for every status."""
    unique_until: Literal["finished", "started", "forever"] | timedelta | float | None
    """Until when the job is unique: until it is finished, until it is claimed, forever,
    or for this time, in seconds or as a timedelta, after its enqueue."""
    on_duplicate: Literal["raise", "return", "replace"] | None
    """A duplicate raises DuplicateJob, returns the job, or replaces its data while it
    waits."""
    debounce: timedelta | float | None
    """The job starts when there was no duplicate for this time, in seconds or as a
    timedelta, with the data of the last one."""
    debounce_max: timedelta | float | None
    """How long ``debounce`` may put the job off in all, in seconds or as a
    timedelta."""
    using: str | None
    """The alias of the database, instead of ``JOBQUEUE["DATABASE"]``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """JobOptions, checked and in normal form. None leaves an option to the type."""

    run_after: datetime | timedelta | None = None
    expires_at: datetime | None = None
    expires_in: timedelta | None = None
    priority: int | None = None
    queue: str | None = None
    id: UUID | None = None
    tags: tuple[str, ...] = ()
    enqueued_by: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    backoff: Backoff | None = None
    metadata: Mapping[str, Any] | None = None
    on_success: tuple[Follower, ...] | None = None
    on_failure: tuple[Follower, ...] | None = None
    on_complete: tuple[Follower, ...] | None = None
    limit_key: str | None = None
    weight: int | None = None
    unique_key: str | None = None
    unique_until: str | timedelta | None = None
    on_duplicate: str | None = None
    debounce: timedelta | None = None
    debounce_max: timedelta | None = None
    using: str | None = None

    def but(self, given: Mapping[str, Any], handler: str = "handler") -> Options:
        """These options with the ``given`` ones in their place. ``handler`` is the
        handler's name in hints.

        Raises InvalidArguments, and TypeError for an unknown option."""
        changes = {}
        for name, value_or_generator in given.items():
            value = reusable(value_or_generator)
            option = OF_JOB.get(name)
            if option is None:
                hint = option_of_types(name) or option_hint(name, OF_JOB, handler)
                raise TypeError(f"There is no option {name!r} of a job.{hint}")
            if problem := option.problem_for_job(value):
                raise InvalidArguments(f"{name} {problem}")
            changes[name] = option.normal(value)
        options = replace(self, **changes)
        if options.expires_at is not None and options.expires_in is not None:
            raise InvalidArguments(
                "expires_at and expires_in both say after which moment the job is not "
                "started; give one of them."
            )
        if problem := options._never_due():
            raise InvalidArguments(problem)
        return options

    def _never_due(self) -> str | None:
        """Why a job with these options could never start: it expires before it is
        due."""
        after, end = self.run_after, self.expires_at
        if after is None or end is None:
            return None
        if isinstance(after, timedelta):
            if not after:
                return None  # it is due now, and expires as if it had waited
            after = timezones.now() + after
        return None if after < end else expires_first(after, end)

    def new_job(self, job_type: str, declaration: Declaration | None) -> NewJob:
        """The row to insert, from these options and the declared policy. Raises
        InvalidArguments for options that contradict the policy."""
        wait = self.run_after if isinstance(self.run_after, timedelta) else timedelta(0)
        moment = None if isinstance(self.run_after, timedelta) else self.run_after
        policy = declaration.policy if declaration else None
        self._check(job_type, policy)
        named = self._followers(policy)
        return NewJob(
            job_type=job_type,
            queue=self.queue or (policy.queue if policy else None),
            priority=self.priority,
            declared_priority=policy.priority if policy else None,
            run_after=moment,
            delay=wait,
            expires_at=self.expires_at,
            expires_in=self.expires_in or (policy.expires_in if policy else None),
            options=self._stored(),
            followers=followers.to_json(named),
            follower_types=followers.job_types(named),
            is_keyed=policy is not None and policy.per_key is not None,
            limit_key=self.limit_key,
            may_move=may_move.get(),
        )

    def _stored(self) -> dict[str, Any]:
        """The options that the row holds, JSON as text."""
        stored = dict(zip(OPTIONS, _GIVEN(self), strict=True))
        stored["tags"] = self._tags_as_json()
        stored["backoff"] = self._backoff_as_json()
        stored["metadata"] = self.metadata_as_json({})
        return stored

    def metadata_as_json(
        self, captured: Mapping[str, Any], trace: Mapping[str, str] | None = None
    ) -> str | None:
        """The JSON text of the metadata and the captured values; None if there are
        none. With the trace of observers, if there is room for it."""
        metadata = {**captured, **(self.metadata or {})}
        limit = conf.max_data_bytes
        if trace and TRACE not in metadata:
            with suppress(InvalidArguments):
                traced = {**metadata, TRACE: trace}
                return to_json(traced, limit=limit, what="metadata")
        if not metadata:
            return None
        return to_json(metadata, limit=limit, what="metadata")

    def _check(self, job_type: str, policy: Policy | None) -> None:
        once = policy is not None and policy.delivery == Delivery.AT_MOST_ONCE
        if once and self.max_attempts not in (None, 1):
            raise InvalidArguments(
                f"max_attempts must be 1: {job_type} is delivered at most once."
            )
        if once and self.backoff is not None:
            raise InvalidArguments(
                f"backoff has no effect: {job_type} is delivered at most once."
            )
        if self.limit_key is not None and policy is not None and not policy.per_key:
            raise InvalidArguments(
                f"limit_key has no effect: {job_type} has no limit by key. Declare it "
                "with @job(per_key=PerKey(…))."
            )
        if self.weight is not None and policy is not None and not weighing(policy):
            raise InvalidArguments(
                f"weight has no effect: {job_type} has no rate that counts it. Declare "
                "it with @job(rate=Rate(…, weight=True))."
            )
        if problem := follower_problem(job_type, self):
            raise InvalidArguments(problem)

    def _followers(self, policy: Policy | None) -> followers.Followers:
        """The followers of a job; its own options go before those of its type."""
        own = followers.followers_of(self)
        if policy is None:
            return own
        of_type = followers.followers_of(policy)
        return {
            option: of_type[option] if named is None else named
            for option, named in own.items()
        }

    def _backoff_as_json(self) -> str | None:
        if self.backoff is None:
            return None
        return json.dumps(stored_form(self.backoff), allow_nan=False)

    def _tags_as_json(self) -> str | None:
        if not self.tags:
            return None
        advice = "Use fewer, or shorter ones."
        return to_json(list(self.tags), limit=TAGS_BYTES, what="tags", advice=advice)


def follower_problem(job_type: str, options: object) -> str | None:
    """Why a follower that these options or this policy name cannot follow on jobs of
    this type; None if all can. A follower that is declared later is not checked."""
    for option, named in followers.followers_of(options).items():
        for one in named or ():
            if one.job_type == job_type:
                return (
                    f"{option} must be another job type than {job_type!r}, which "
                    "would follow on itself forever."
                )
            declaration = registry.get(one.job_type)
            problem = declaration and followers.call_problem(declaration.parameters)
            if problem:
                return f"{option} {problem}"
    return None


def expires_first(run_after: datetime, expires_at: datetime) -> str:
    """The problem of a job that expires before it is due."""
    return (
        f"expires_at must be later than run_after: the job would be due at "
        f"{run_after} and not be started after {expires_at}."
    )
