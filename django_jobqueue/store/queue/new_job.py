"""The row of a job that is enqueued."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import UUID

from django_jobqueue.store.columns import JOB_COLUMNS, OPTIONS

RARE_OPTIONS: Final = [one.name for one in JOB_COLUMNS if one.is_option and one.is_rare]
NONE: Final = dict.fromkeys(OPTIONS)


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
    # Those of store/columns.py, where they are given; JSON as text.
    options: Mapping[str, Any] = field(default_factory=dict)
    followers: str | None = None  # JSON text
    follower_types: list[str] | None = None  # whom the JSON text names, at any depth
    unique_key: UUID | None = None
    unique_rule: str | None = None  # JSON text of a UniqueRule, if there is no key
    unique_until_started: bool = False
    unique_window: bool = False  # the key is held from the enqueue on
    unique_for: timedelta | None = None  # so long; None is forever
    replaces: bool = False  # a duplicate replaces the data of the job that waits
    moves: bool = False  # and its run_after
    may_move: bool = True  # and its queue
    is_keyed: bool = False  # its type has a limit by key
    limit_key: str | None = None  # instead of the key of its arguments
    usual_delay: bool = False  # all jobs of the type have this delay
    debounce_max: timedelta | None = None  # but not beyond this, from its enqueue

    @cached_property
    def is_unique(self) -> bool:
        """True if there is one such job at a time."""
        return self.unique_key is not None or self.unique_rule is not None

    @cached_property
    def has_more(self) -> bool:
        """True if it has something that few jobs have."""
        more = any(map(self.options.get, RARE_OPTIONS))
        return bool(more or self.followers or self.is_unique or self.is_keyed)

    @cached_property
    def is_plain(self) -> bool:
        """True if it is due at once, never expires, and has nothing unusual."""
        return not any(
            (
                self.run_after,
                self.delay,
                self.expires_at,
                self.expires_in,
                *self.options.values(),
                self.has_more,
            )
        )

    @cached_property
    def is_of_type(self) -> bool:
        """True if all but its data and its unique key is its type's."""
        own = (self.followers, self.expires_at, self.expires_in, self.run_after)
        is_usual = self.usual_delay or not (self.delay or self.moves)
        return (
            is_usual and not self.is_keyed and not any((*own, *self.options.values()))
        )

    @cached_property
    def lane(self) -> tuple[Any, ...]:
        """The values that the job type's row supplies."""
        return self.job_type, self.queue, self.priority, self.declared_priority

    def params(self) -> dict[str, Any]:
        """The parameters of the INSERTs."""
        return {
            **{name: getattr(self, name) for name in _NAMES},
            **NONE,
            **self.options,
        }

    def but(self, **options: Any) -> NewJob:
        """The same with other ``options``."""
        return replace(self, options={**self.options, **options})


_NAMES: Final = [one.name for one in fields(NewJob) if one.name != "options"]
