"""The counts of a draft's jobs, as data that is kept with the operation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

MOST_EXAMPLES: Final = 5
MOST_TYPES: Final = 200  # names of job types that are remembered


class Traits(NamedTuple):
    """A job as the count and the work see it: its status, and what may skip it."""

    id: UUID
    at: datetime  # end of an archived job, creation of a queued one
    job_type: str
    traits: str  # in a row: "failed replayed expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Counts of a draft's jobs, by their traits, as far as they are counted.

    The jobs are counted in the order in which they would be worked off, so a count that
    was interrupted goes on at its cursor.
    """

    cells: Mapping[str, int] = field(default_factory=dict)  # number by traits
    examined: int = 0  # rows, whether they are selected or not
    oldest: datetime | None = None
    newest: datetime | None = None
    job_types: Sequence[str] = ()
    examples: Sequence[UUID] = ()
    cursor: Sequence[str] | None = None
    over: bool = False  # nothing is left to be counted
    is_most: bool | None = None  # more than half of the table; None: not known

    @property
    def number(self) -> int:
        """The number of counted jobs."""
        return sum(self.cells.values())

    def having(self, trait: str) -> int:
        """The number of counted jobs that have this trait."""
        return sum(n for traits, n in self.cells.items() if trait in traits.split())

    def by_status(self) -> dict[str, int]:
        """The number of jobs of each status."""
        numbers: Counter[str] = Counter()
        for traits, number in self.cells.items():
            numbers[traits.split()[0]] += number
        return dict(sorted(numbers.items()))

    def plus(
        self,
        jobs: Sequence[Traits],
        *,
        examples: Sequence[UUID],
        examined: int,
        cursor: Sequence[str],
        over: bool,
    ) -> Counted:
        """The same with the jobs of one more chunk, and these examples."""
        cells = Counter(self.cells)
        cells.update(job.traits for job in jobs)
        types = {*self.job_types, *(job.job_type for job in jobs)}
        return replace(
            self,
            cells=dict(cells),
            examined=self.examined + examined,
            oldest=_first(min, self.oldest, jobs),
            newest=_first(max, self.newest, jobs),
            job_types=sorted(types)[:MOST_TYPES],
            examples=examples,
            cursor=cursor,
            over=over,
        )

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(
            {
                "cells": dict(self.cells),
                "examined": self.examined,
                "oldest": self.oldest and self.oldest.isoformat(),
                "newest": self.newest and self.newest.isoformat(),
                "job_types": list(self.job_types),
                "examples": [str(id) for id in self.examples],
                "cursor": self.cursor,
                "over": self.over,
                "is_most": self.is_most,
            }
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Counted:
        """Read the text that ``to_json`` wrote; None is an empty count."""
        read = dict(value or {})
        for name in ("oldest", "newest"):
            if read.get(name):
                read[name] = datetime.fromisoformat(read[name])
        read["examples"] = [UUID(id) for id in read.get("examples", ())]
        return cls(**read)


def _first(
    choose: Any, known: datetime | None, jobs: Iterable[Traits]
) -> datetime | None:
    moments = [job.at for job in jobs]
    if known is not None:
        moments.append(known)
    return choose(moments, default=None)  # type: ignore[no-any-return]
