"""How many workers a host has, with how many slots, for which queues; and which of it
operators may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Self

from django_jobqueue.domain.policy import queue_problem
from django_jobqueue.text.suggestions import did_you_mean

# What is reserved in the shared memory of a host, unless its settings say more.
BOUNDS: Final = {"processes": 100, "threads": 1_000, "async_slots": 10_000}
MOST_QUEUES: Final = 100


class HostPlan(NamedTuple):
    """The workers that a host is to have."""

    processes: int
    threads: int  # of each
    async_slots: int  # of each
    queues: tuple[str, ...] | None  # None is every queue

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> Self:
        """The plan that ``to_json()`` made this of."""
        queues = value["queues"]
        return cls(
            processes=value["processes"],
            threads=value["threads"],
            async_slots=value["async_slots"],
            queues=None if queues is None else tuple(queues),
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON."""
        return self._asdict()

    def changed(self, changes: Mapping[str, Any]) -> HostPlan:
        """This plan with the values that are in ``changes``, which have no problem."""
        return HostPlan.of_json({**self.to_json(), **plan_changes(changes)})


PLAN_KEYS: Final = HostPlan._fields


def plan_changes(desired: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an operator's request that is about the plan."""
    return {key: desired[key] for key in PLAN_KEYS if key in desired}


def request_words(asked: Mapping[str, Any]) -> list[str]:
    """Describe operators' request to a host, or a part of it."""
    words = []
    for name, value in asked.items():
        if name == "draining":
            words.append("drain" if value else "resume")
        elif name in ("restart", "stop"):
            words.append(name)
        elif name == "queues":
            listed = "every" if value is None else ",".join(map(str, value))
            words.append(f"queues {listed}")
        elif name in PLAN_KEYS:
            words.append(f"{name.replace('_', ' ')} {value}")
    return words


def changes_problem(
    changes: Mapping[str, Any], bounds: Mapping[str, int] = BOUNDS
) -> str | None:
    """A sentence about the first value that is of no plan; None if all are."""
    for name, value in changes.items():
        if name == "queues":
            problem = _queues_problem(value)
        elif name in bounds:
            problem = _number_problem(value, bounds[name])
        else:
            problem = f"is not part of a plan.{did_you_mean(name, PLAN_KEYS)}"
        if problem:
            return f"{name} {problem}"
    return None


def plan_problem(plan: HostPlan) -> str | None:
    """A sentence if nothing could run under this plan, though it has processes."""
    if plan.processes and not (plan.threads or plan.async_slots):
        return "With 0 threads and 0 async slots nothing can run."
    return None


def _number_problem(value: Any, most: int) -> str | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and 0 <= value <= most:
        return None
    return f"must be a whole number from 0 to {most:,}, not {value!r}."


def _queues_problem(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, list | tuple) or not value:
        return f"must be a list of names, or None for every queue, not {value!r}."
    if len(value) > MOST_QUEUES:
        return f"must have at most {MOST_QUEUES} names, not {len(value)}."
    problems = (queue_problem(queue) for queue in value)
    return next((f"has a name that {each}" for each in problems if each), None)
