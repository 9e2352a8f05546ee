"""What the verbs have in common: ids, moments, priorities and queues that can be."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.ids import as_id
from django_jobqueue.options import time_problem
from django_jobqueue.policy import priority_problem, queue_problem

Ids = Iterable[UUID | str]


def keys_of(ids: Ids) -> list[UUID]:
    """These as ids. Raises InvalidArguments."""
    return [as_id(id) for id in ids]


def check(
    *,
    priority: int | None = None,
    queue: str | None = None,
    **moments: datetime | None,
) -> None:
    """Raises InvalidArguments for what no job can have."""
    for name, moment in moments.items():
        if problem := time_problem(name, moment, "a datetime"):
            raise InvalidArguments(problem)
    if priority is not None and (problem := priority_problem(priority)):
        raise InvalidArguments(f"priority {problem}")
    if queue is not None and (problem := queue_problem(queue)):
        raise InvalidArguments(f"queue {problem}")
