"""What operators say: the effective policies, code plus overrides, read again after a
change; and which running jobs they cancelled."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from django_jobqueue.conf import conf
from django_jobqueue.domain import key_limits
from django_jobqueue.domain.policy import attempts_in_force, time_in_force
from django_jobqueue.domain.registry import BY_ENDPOINTS, Declaration, Registry
from django_jobqueue.domain.states import Delivery
from django_jobqueue.domain.weights import weighing
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.rooms import named
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.control import cancel
from django_jobqueue.store.errors import is_contended
from django_jobqueue.store.partial_batches import BRIEF
from django_jobqueue.store.queue import limits_in_force
from django_jobqueue.store.queue.limits_in_force import KeyLimit, Limits, Overrides
from django_jobqueue.store.rows import ClaimedJob

NO_OVERRIDES: Final = Overrides(None, None, None, None)
UNLIMITED: Final = Limits()
POLL_EVERY: Final = 5.0  # seconds between looks for cancels, or POLL_INTERVAL if less


class EffectivePolicy(NamedTuple):
    """The effective policy of a job type: the code's, with the overrides."""

    declaration: Declaration
    max_attempts: int | None  # of a job that says nothing itself; None is unlimited
    timeout: float | None  # seconds; None is unlimited
    is_async: bool

    def attempts_of(self, job: ClaimedJob) -> int | None:
        """The maximum of attempts of this job; None is unlimited."""
        if job.max_attempts is None:
            return self.max_attempts
        delivery = self.declaration.policy.delivery
        return attempts_in_force(delivery, job.max_attempts, None, None)

    def timeout_of(self, job: ClaimedJob) -> float | None:
        """How many seconds an attempt at this job may run; None is unlimited."""
        return self.timeout if job.timeout is None else job.timeout


class Policies:
    """The job types that this worker runs, with their effective policies; not those of
    remote workers.

    The registry is asked each time: a module that declares some may be imported long
    after the worker started, by a handler or because a row names a task.
    """

    def __init__(
        self,
        registry: Registry,
        has_slots_for: Callable[[Declaration], bool] = lambda declaration: True,
    ) -> None:
        self._registry = registry
        self._has_slots_for = has_slots_for
        self._declared: dict[str, Declaration] = {}
        self._overrides: Mapping[str, Overrides] = {}
        self._effective: dict[str, EffectivePolicy] = {}
        self._limits: dict[str, Limits] = {}
        self.held_back: frozenset[str] = frozenset()  # types that are not claimed now

    @property
    def names(self) -> list[str]:
        """The job types that this worker can run."""
        return sorted(
            declaration.name
            for declaration in self._registry
            if self._has_slots_for(declaration) and self.knows(declaration.name)
        )

    def update(self, overrides: Mapping[str, Overrides]) -> None:
        """Replace the overrides by these."""
        self._overrides = overrides
        self._effective, self._limits = {}, {}

    def runs(self, job_type: str, *, is_async: bool) -> bool:
        """True if this job type has a handler here, of this kind."""
        return (
            job_type not in self.held_back
            and self.knows(job_type)
            and self.effective_policy(job_type).is_async is is_async
        )

    def knows(self, job_type: str) -> bool:
        """True if this job type has a handler here."""
        return self._find(job_type) is not None

    def _find(self, job_type: str) -> Declaration | None:
        """Its declaration, once the module of the handler is there as a whole."""
        declaration = self._declared.get(job_type)
        if declaration is None:
            declaration = self._registry.get(job_type)
            if (
                declaration is None
                or not _is_run_here(declaration)
                or _is_being_imported(declaration)
            ):
                return None
            self._declared[job_type] = declaration
        return declaration

    def limits(self, job_type: str) -> Limits:
        """The limits of the job type across the cluster."""
        limits = self._limits.get(job_type)
        if limits is None:
            overrides = self._overrides.get(job_type)
            declaration = self._declared.get(job_type)
            if overrides is not None:
                limits = Limits.in_force(overrides)
            elif declaration is not None:
                limits = _declared_limits(declaration)
            else:
                return UNLIMITED
            self._limits[job_type] = limits
        return limits

    def is_exclusive(self, job_type: str) -> bool:
        """True if a claim of these counts as a start, or against a limit or a rate.

        Then they are claimed only for slots that are free, each type with a statement
        of its own.
        """
        policy = self._declared[job_type].policy
        return (
            policy.delivery == Delivery.AT_MOST_ONCE
            or self.limits(job_type) != UNLIMITED
        )

    def effective_policy(self, job_type: str) -> EffectivePolicy:
        """The effective policy of this job type."""
        effective_policy = self._effective.get(job_type)
        if effective_policy is None:
            effective_policy = self._effective[job_type] = self._compute(job_type)
        return effective_policy

    def _compute(self, job_type: str) -> EffectivePolicy:
        declaration = self._declared[job_type]
        policy = declaration.policy
        override = self._overrides.get(job_type, NO_OVERRIDES)
        allowed = time_in_force(None, policy.time_allowed, override.timeout)
        return EffectivePolicy(
            declaration,
            attempts_in_force(
                policy.delivery, None, policy.attempts_allowed, override.max_attempts
            ),
            None if allowed is None else allowed.total_seconds(),
            declaration.is_async,
        )


def _declared_limits(declaration: Declaration) -> Limits:
    policy, keys = declaration.policy, None
    if (per_key := policy.per_key) is not None:
        name = key_limits.limit_name(declaration)
        assert name is not None  # it has a limit
        keys = KeyLimit(
            name,
            per_key.concurrency,
            has_rate=per_key.rate is not None,
            strict=per_key.strict,
        )
    return Limits(
        policy.concurrency is not None,
        policy.rate is not None,
        bool(weighing(policy)),
        keys,
    )


def _is_run_here(declaration: Declaration) -> bool:
    """True if there is a function, or a room that sends its jobs to endpoints."""
    if declaration.endpoint:
        return BY_ENDPOINTS in named("handlers")
    return not declaration.is_remote


def _is_being_imported(declaration: Declaration) -> bool:
    module = sys.modules.get(declaration.function.__module__)
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


class PolicyReader:
    """Keeps the policies of a worker up to date, and what its row says of them."""

    def __init__(
        self, worker: int, connection: OwnConnection, policies: Policies
    ) -> None:
        self._worker = worker
        self._connection = connection
        self._policies = policies
        self._written = policies.names  # in the worker's row

    def read(self) -> None:
        """Read the overrides of all job types, and write which ones are run here if a
        module was imported meanwhile. Raises StoreUnavailable."""
        self._policies.update(limits_in_force.overrides(self._connection))
        names = self._policies.names
        if names != self._written:
            self._write(names)

    def _write(self, names: list[str]) -> None:
        """In the worker's row; if that is locked, after the next look."""
        try:
            with self._connection.patience(BRIEF):
                worker_rows.learnt(self._connection, self._worker, names)
        except StoreUnavailable as error:
            if not is_contended(error):
                raise
        else:
            self._written = names


class CancellationPoll:
    """Asks the database now and then which running jobs an operator has cancelled."""

    def __init__(
        self, running: Callable[[], Sequence[Attempt]], cancel: Callable[[str], None]
    ) -> None:
        self._running = running
        self._cancel = cancel
        self.next_at = 0.0  # time.monotonic()

    def poll(self, connection: OwnConnection, now: float) -> float:
        """Stop cancelled jobs, unless the last poll was a moment ago; returns the
        seconds until the next one, without end if nothing runs. Raises
        StoreUnavailable."""
        if now >= self.next_at:
            self.next_at = now + min(POLL_EVERY, conf.poll_interval)
            ids = [attempt.job.id for attempt in self._running()]
            if not ids:
                return math.inf
            for id in cancel.requested(connection, ids):
                self._cancel(str(id))
        return self.next_at - now
