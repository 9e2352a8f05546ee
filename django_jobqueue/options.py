"""What ``using`` and ``enqueue`` say about the jobs to be enqueued."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django_jobqueue.arguments import to_json
from django_jobqueue.exceptions import InvalidArguments
from django_jobqueue.ids import as_id
from django_jobqueue.policy import (
    LONGEST,
    WHO_LENGTH,
    priority_problem,
    queue_problem,
)
from django_jobqueue.registry import Declaration
from django_jobqueue.store.insert import NewJob

TAGS_BYTES: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``using`` says about the jobs to be enqueued. None leaves it to the type."""

    run_after: datetime | timedelta | None = None
    expires_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    id: UUID | str | None = None
    tags: tuple[str, ...] = ()
    enqueued_by: str | None = None

    def checked(self) -> Options:
        """The same options with a UUID for the id. Raises InvalidArguments."""
        problem = None
        if self.queue is not None and (found := queue_problem(self.queue)):
            problem = f"queue {found}"
        if self.priority is not None and (found := priority_problem(self.priority)):
            problem = f"priority {found}"
        problem = problem or _run_after_problem(self.run_after)
        problem = problem or time_problem("expires_at", self.expires_at, "a datetime")
        problem = problem or _name_problem("enqueued_by", self.enqueued_by)
        if problem:
            raise InvalidArguments(problem)
        return self if self.id is None else replace(self, id=as_id(self.id))

    def new_job(self, job_type: str, declaration: Declaration | None) -> NewJob:
        """What is to be inserted, from these options and the code's policy."""
        wait = self.run_after if isinstance(self.run_after, timedelta) else timedelta(0)
        moment = None if isinstance(self.run_after, timedelta) else self.run_after
        policy = declaration and declaration.policy
        return NewJob(
            job_type=job_type,
            queue=self.queue or (policy.queue if policy else None),
            priority=self.priority,
            declared_priority=policy.priority if policy else None,
            run_after=moment,
            delay=wait,
            expires_at=self.expires_at,
            expires_in=policy.expires_in if policy else None,
            enqueued_by=self.enqueued_by,
            tags=self._tags_as_json(),
        )

    def _tags_as_json(self) -> str | None:
        if not self.tags:
            return None
        advice = "Use fewer, or shorter ones."
        return to_json(list(self.tags), limit=TAGS_BYTES, what="tags", advice=advice)


def as_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags as they are kept. Raises InvalidArguments."""
    kept = tuple(tags)
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in kept):
        raise InvalidArguments(f"tags must be a list of strings, not {tags!r}.")
    return kept


def _run_after_problem(value: object) -> str | None:
    if not isinstance(value, timedelta):
        return time_problem("run_after", value, "a datetime or a timedelta")
    if value > LONGEST:
        return f"run_after must be at most {LONGEST.days:,} days away, not {value}."
    return None


def _name_problem(option: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and len(value) <= WHO_LENGTH):
        return None
    return f"{option} must be a string of at most {WHO_LENGTH} characters."


def time_problem(name: str, value: object, kinds: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, datetime):
        return f"{name} must be {kinds}, not {value!r}."
    if value.tzinfo is None or value.utcoffset() is None:
        return f"{name} must be aware of its time zone; {value!r} is naive."
    return None
