"""The ids that ``enqueue_many`` returns, and which of the jobs are new."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from uuid import UUID


class EnqueuedIds(list[UUID]):
    """The id of each call's job, in order; duplicates of unique jobs have the same."""

    def __init__(
        self,
        ids: Iterable[UUID] = (),
        *,
        replaced: Iterable[UUID] = (),
        existing: Iterable[UUID] = (),
    ) -> None:
        super().__init__(ids)
        self.replaced = list(replaced)  # jobs that waited, and have the new data
        self.existing = list(existing)  # jobs that were there, and are as they were

    @cached_property
    def new(self) -> list[UUID]:
        """The jobs that were made."""
        others = {*self.replaced, *self.existing}
        return [id for id in dict.fromkeys(self) if id not in others]
