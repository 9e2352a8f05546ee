"""How far callers that are bound to some jobs may go beyond what a job type says."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django_jobqueue.contrib.http.callers import Caller
from django_jobqueue.contrib.http.job_objects import TypeFacts, facts_of
from django_jobqueue.contrib.http.problems import Problem
from django_jobqueue.domain.policy import attempts_in_force, time_in_force
from django_jobqueue.domain.registry import registry


def check_bounds(caller: Caller, job_type: str, options: Mapping[str, Any]) -> None:
    """Raises Problem for a priority, timeout (in seconds) or number of attempts above
    those of the job type, from a caller that is bound to job types or queues: it shares
    the workers with others, whose jobs would wait."""
    if not (caller.job_types or caller.queues):
        return
    for name, most in _bounds(job_type).items():
        given = options.get(name)
        if given is not None and most is not None and given > most:
            raise Problem(
                "forbidden",
                f"{name} must be at most {most:.10g}, as the job type says: the caller "
                "is bound to some job types or queues.",
            )


def _bounds(job_type: str) -> dict[str, float | None]:
    """The options of the job type that are in force; None is unlimited."""
    facts = facts_of(job_type)
    if facts is None:  # it is declared by its first enqueue
        declaration = registry.get(job_type)
        return {"priority": declaration.policy.priority if declaration else None}
    timeout = time_in_force(None, facts.timeout, facts.timeout_override)
    return {
        "priority": _priority(facts),
        "timeout": timeout / timedelta(seconds=1) if timeout else None,
        "max_attempts": attempts_in_force(
            facts.delivery, None, facts.max_attempts, facts.max_attempts_override
        ),
    }


def _priority(facts: TypeFacts) -> int:
    override = facts.priority_override
    return facts.priority if override is None else override
