"""A schedule of another job queue, in our words as far as we have them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django_jobqueue.domain.policy import NAME_LENGTH
from django_jobqueue.domain.schedule_rules import ScheduleRule


class NotImportable(Exception):
    """No schedule of ours says the same; the reason is a sentence."""


@dataclass(slots=True, kw_only=True)
class ForeignSchedule:
    """A row of theirs. It has a rule, or is a single job at a moment, or neither if it
    is refused."""

    id: int
    name: str  # of our schedule
    task: str  # their dotted name of the function
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    rule: ScheduleRule | None = None
    run_at: datetime | None = None
    once: bool = False  # one job, at its moment or at the next one of its rule
    time_zone: str = ""
    starts: datetime | None = None
    ends: datetime | None = None
    options: dict[str, Any] = field(default_factory=dict)  # of its jobs
    enabled: bool = True
    refusal: str = ""  # a sentence; empty if it can be imported
    notes: list[str] = field(default_factory=list)  # sentences about what is left

    @property
    def period(self) -> dict[str, datetime]:
        """Between which moments it fires, as options of ``at()``."""
        both = {"starts": self.starts, "ends": self.ends}
        return {name: moment for name, moment in both.items() if moment is not None}


def name_of(text: str) -> str:
    """A name for our schedule: without spaces and what cannot be printed."""
    name = re.sub(r"\s+", "-", text.strip())
    return "".join(c for c in name if c.isprintable())[:NAME_LENGTH] or "unnamed"


def make_unique(schedules: Iterable[ForeignSchedule]) -> None:
    """Add its id to the name of each that an earlier one has already."""
    names: set[str] = set()
    for one in schedules:
        if one.name in names:
            tail = f"-{one.id}"
            one.name = one.name[: NAME_LENGTH - len(tail)] + tail
        names.add(one.name)
