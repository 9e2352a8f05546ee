"""What a handler can know about the attempt that it is: ``takes_context=True``."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django_jobqueue.exceptions import Cancel


@dataclass(slots=True, kw_only=True, eq=False)
class Context:
    """The attempt that is running."""

    id: UUID
    job_type: str
    queue: str
    attempt: int  # 1 for the first
    max_attempts: int | None  # None is without end
    crashes: int
    data: Any
    run_after: datetime
    created_at: datetime
    worker: str
    deadline: float | None = None  # time.monotonic() at which it times out
    _cancelled: bool = field(default=False, repr=False)

    @property
    def cancelled(self) -> bool:
        """Whether an operator cancelled this job, or its worker is stopping."""
        return self._cancelled

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the timeout; None if there is none."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - time.monotonic())

    def check_cancelled(self) -> None:
        """Raise ``Cancel`` if the job should not go on."""
        if self._cancelled:
            raise Cancel("the handler was asked to stop")
