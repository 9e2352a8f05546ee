"""How jobs are replayed or rescheduled: the options that operators choose from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django_jobqueue.domain.states import ReplayExpiry, SkipReplayed


class Options(NamedTuple):
    """How an operation does what it does, on one job or on a million; each verb reads
    the options that it knows. None keeps what a job has.

    A replay that says nothing else gives each job as long to live as it had. Somebody
    replays a job so that it runs: with the old moment, a job that ended long ago would
    expire again, unseen.
    """

    queue: str | None = None  # replay, reschedule
    priority: int | None = None
    run_after: datetime | None = None
    # The others are of a replay.
    max_attempts: int | None = None
    expires: ReplayExpiry = ReplayExpiry.SAME
    expires_at: datetime | None = None  # with ReplayExpiry.NEW
    skip_replayed: SkipReplayed = SkipReplayed.ANY
    skip_at_most_once: bool = True
    # These are of a bulk operation.
    undo_of: UUID | None = None  # the operation whose jobs are cancelled
    resolves: UUID | None = None  # the failure group that its start resolves
    limit: int | None = None  # no more jobs are changed

    @property
    def moves(self) -> bool:
        """True if jobs get another time, priority or queue."""
        chosen = (self.run_after, self.priority, self.queue)
        return any(value is not None for value in chosen)

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(self._asdict(), default=str)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Options:
        """Options that ``to_json`` wrote, read from its text."""
        read = {name: _READ.get(name, _same)(stored) for name, stored in value.items()}
        return cls(**read)


def _same(value: Any) -> Any:
    return value


def _moment(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _id(value: str | None) -> UUID | None:
    return UUID(value) if value else None


_READ: Mapping[str, Any] = {
    "run_after": _moment,
    "expires": ReplayExpiry,
    "expires_at": _moment,
    "skip_replayed": SkipReplayed,
    "undo_of": _id,
    "resolves": _id,
}
