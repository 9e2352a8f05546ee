"""Find schedules of ours that already fire what an import would make."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final, NamedTuple

from django_jobqueue.contrib.importing import foreign_tables
from django_jobqueue.contrib.schedules.due_firings import Origin
from django_jobqueue.domain.schedule_rules import ScheduleRule, parse
from django_jobqueue.domain.schedules import ScheduleDeclaration, schedules
from django_jobqueue.store.connection import Database

COMPARED: Final = 20  # next moments: rules that are written differently may be the same


class _Ours(NamedTuple):
    """A schedule here, as it is in force."""

    name: str
    job_type: str
    rule: ScheduleRule
    data: Any
    options: Any
    is_declared: bool  # by the code

    def does(self, planned: ScheduleDeclaration) -> bool:
        """True if its jobs do the same. Operators may want two with other options."""
        same = (self.job_type, self.data) == (planned.job_type, planned.data)
        is_other = self.name != planned.name
        return (
            same and is_other and (self.is_declared or self.options == planned.options)
        )


class OurSchedules:
    """Those of these job types: of the code, also if it is not deployed yet, and those
    that operators have made."""

    def __init__(self, db: Database, job_types: Collection[str]) -> None:
        rows = foreign_tables.of_job_types(db, sorted(job_types))
        of_rows = {one.name: one for row in rows if (one := _of_row(row)) is not None}
        of_code = {
            one.name: _Ours(
                one.name, one.job_type, one.rule, one.data, one.options, True
            )
            for one in schedules
        }
        self._all = list({**of_code, **of_rows}.values())

    def double_of(self, planned: ScheduleDeclaration, now: datetime) -> str:
        """Why it would fire twice, as a sentence; empty if it would not."""
        moments = list(_moments(planned.rule, now))
        for one in self._all:
            if one.does(planned) and list(_moments(one.rule, now)) == moments:
                how = ", which the code declares," if one.is_declared else ""
                return (
                    f"The schedule {one.name!r} here{how} fires at the same moments "
                    "with the same data. Disable theirs by hand."
                )
        return ""


def _of_row(row: dict[str, Any]) -> _Ours | None:
    """As operators left it; None if its rule cannot be read."""
    zone = row["time_zone_override"] or row["time_zone"]
    try:
        rule = parse(row["rule_override"] or row["rule"], zone)
    except ValueError:
        return None
    data = row["data"] if row["data_override"] is None else row["data_override"]
    is_declared = row["origin"] == Origin.CODE
    return _Ours(row["name"], row["job_type"], rule, data, row["options"], is_declared)


def _moments(rule: ScheduleRule, now: datetime) -> Iterator[datetime]:
    def following() -> Iterator[datetime]:
        at: datetime | None = now
        while at is not None and (at := rule.next_after(at)) is not None:
            yield at

    return islice(following(), COMPARED)
