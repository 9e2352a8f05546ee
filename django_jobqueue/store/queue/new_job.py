"""The row of a job that is enqueued."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
from uuid import UUID


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """The values of an enqueue. None leaves a choice to the job type."""

    job_type: str
    queue: str | None = None
    priority: int | None = None
    declared_priority: int | None = None
    run_after: datetime | None = None
    delay: timedelta = timedelta(0)  # from now, if run_after is None
    expires_at: datetime | None = None
    expires_in: timedelta | None = None  # from when it is due
    enqueued_by: str | None = None
    tags: str | None = None  # JSON text
    max_attempts: int | None = None
    timeout: timedelta | None = None
    backoff: str | None = None  # JSON text
    metadata: str | None = None  # JSON text
    followers: str | None = None  # JSON text
    follower_types: list[str] | None = None  # whom the JSON text names, at any depth
    unique_key: UUID | None = None
    unique_rule: str | None = None  # JSON text of a UniqueRule, if there is no key
    unique_until_started: bool = False
    unique_window: bool = False  # the key is held from the enqueue on
    unique_for: timedelta | None = None  # so long; None is forever
    replaces: bool = False  # a duplicate replaces the data of the job that waits
    moves: bool = False  # and its run_after
    is_keyed: bool = False  # its type has a limit by key
    limit_key: str | None = None  # instead of the key of its arguments
    weight: int | None = None  # instead of what its arguments say
    usual_delay: bool = False  # all jobs of the type have this delay
    debounce_max: timedelta | None = None  # but not beyond this, from its enqueue

    @cached_property
    def is_unique(self) -> bool:
        """Whether there is one such job at a time."""
        return self.unique_key is not None or self.unique_rule is not None

    @cached_property
    def has_more(self) -> bool:
        """Whether it has something that few jobs have."""
        more = (
            self.max_attempts,
            self.timeout,
            self.backoff,
            self.metadata,
            self.followers,
            self.weight,
        )
        return any(more) or self.is_unique or self.is_keyed

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is due at once, never expires, and has nothing unusual."""
        return not any(
            (
                self.run_after,
                self.delay,
                self.expires_at,
                self.expires_in,
                self.enqueued_by,
                self.tags,
                self.has_more,
            )
        )

    @cached_property
    def is_of_type(self) -> bool:
        """Whether all but its data and its unique key is its type's."""
        more = (
            self.max_attempts,
            self.timeout,
            self.backoff,
            self.metadata,
            self.followers,
            self.tags,
            self.weight,
        )
        ends = (self.expires_at, self.expires_in, self.run_after, self.enqueued_by)
        is_usual = self.usual_delay or not (self.delay or self.moves)
        return is_usual and not self.is_keyed and not any((*more, *ends))

    @cached_property
    def lane(self) -> tuple[Any, ...]:
        """What the job type's row is looked up for."""
        return self.job_type, self.queue, self.priority, self.declared_priority

    def params(self) -> dict[str, Any]:
        """The parameters of the statements above."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
