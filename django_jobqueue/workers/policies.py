"""The policies in force: what the code says, and operators override."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django_jobqueue.policy import attempts_in_force
from django_jobqueue.registry import Declaration
from django_jobqueue.states import Delivery
from django_jobqueue.store.rows import ClaimedJob, Overrides

NOTHING = Overrides(None, None, None, None)


class Policies:
    """The job types that this worker runs, with their effective policies."""

    def __init__(self, declarations: Iterable[Declaration]) -> None:
        self._declared = {d.name: d for d in declarations}
        self._overrides: Mapping[str, Overrides] = {}
        self._timeouts: dict[str, float | None] = {}

    @property
    def names(self) -> list[str]:
        """The job types that have a handler here."""
        return sorted(self._declared)

    def update(self, overrides: Mapping[str, Overrides]) -> None:
        """Take what operators say now."""
        self._overrides = overrides
        self._timeouts = {}

    def learn(self, declaration: Declaration) -> None:
        """Run jobs of this type, too."""
        self._declared[declaration.name] = declaration

    def declaration(self, job_type: str) -> Declaration:
        """The handler of this job type."""
        return self._declared[job_type]

    def runs(self, job_type: str, *, is_async: bool) -> bool:
        """Whether this job type has a handler here, of this kind."""
        declaration = self._declared.get(job_type)
        return declaration is not None and declaration.is_async is is_async

    def is_limited(self, job_type: str) -> bool:
        """Whether only so many of these may run at once in the whole cluster."""
        overrides = self._overrides.get(job_type)
        if overrides is None:
            return self._declared[job_type].policy.concurrency is not None
        return overrides.concurrency is not None

    def is_careful(self, job_type: str) -> bool:
        """Whether these are claimed only for slots that are free."""
        policy = self._declared[job_type].policy
        return policy.delivery == Delivery.AT_MOST_ONCE or self.is_limited(job_type)

    def max_attempts(self, job: ClaimedJob) -> int | None:
        """How many attempts this job has; None is without end."""
        declared = self._declared[job.job_type].policy
        return attempts_in_force(
            declared.delivery,
            job.max_attempts,
            declared.attempts_allowed,
            self._overrides.get(job.job_type, NOTHING).max_attempts,
        )

    def timeout(self, job_type: str) -> float | None:
        """How many seconds an attempt may run; None is without end."""
        if job_type not in self._timeouts:
            override = self._overrides.get(job_type, NOTHING).timeout
            allowed = self._declared[job_type].policy.time_allowed
            chosen = allowed if override is None else override
            self._timeouts[job_type] = (chosen and chosen.total_seconds()) or None
        return self._timeouts[job_type]
