"""Describes the job that a test expects, and how far a job differs from it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from django_jobqueue.store.rows import Job
from django_jobqueue.text.suggestions import no_argument

OTHER_TYPE: Final = "another job type"
BESIDES: Final = "*"  # key of what tasks keep beside their arguments


class About(TypedDict, total=False):
    """The options by which a test may describe a job, besides its type."""

    data: Mapping[str, Any] | None
    data_contains: Mapping[str, Any] | None
    queue: str | None
    run_after: datetime | timedelta | None
    tolerance: timedelta
    priority: int | None
    tags: Collection[str]
    status: str | None


def check_about(callee: str, about: Mapping[str, Any]) -> None:
    """Raises TypeError for an argument that there is not, and for a time of a wrong
    type."""
    for name in about:
        if name not in About.__annotations__:
            known = (*About.__annotations__, "count")
            raise TypeError(no_argument(callee, name, known))
    after, tolerance = about.get("run_after"), about.get("tolerance", timedelta())
    if after is not None and not isinstance(after, datetime | timedelta):
        raise TypeError(f"run_after must be a datetime or a timedelta, not {after!r}.")
    if not isinstance(tolerance, timedelta):
        raise TypeError(f"tolerance must be a timedelta, not {tolerance!r}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A job that a test looks for; what is None may be anything."""

    job_type: str
    data: Mapping[str, Any] | None = None
    data_contains: Mapping[str, Any] | None = None
    queue: str | None = None
    run_after: datetime | timedelta | None = None
    tolerance: timedelta = timedelta(seconds=1)
    priority: int | None = None
    tags: Collection[str] = ()
    status: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.tags, str):
            raise TypeError(f"tags must be a list of strings: tags=[{self.tags!r}].")

    def __str__(self) -> str:
        conditions = {
            "data": self.data,
            "data_contains": self.data_contains,
            "queue": self.queue,
            "run_after": self.run_after,
            "priority": self.priority,
            "tags": sorted(self.tags) or None,
            "status": self.status,
        }
        parts = [f"{k}={written(v)}" for k, v in conditions.items() if v is not None]
        return f"{self.job_type!r}" + (f" with {', '.join(parts)}" if parts else "")

    def differences(self, job: Job) -> list[str]:
        """In what this job is another, in words; empty if it is the one."""
        if job.job_type != self.job_type:
            return [OTHER_TYPE]
        return [*self._of_data(arguments(job)), *self._of_options(job)]

    def distance(self, job: Job) -> int:
        """The number of differences of this job; 0 if it matches."""
        differences = self.differences(job)
        return 100 if OTHER_TYPE in differences else len(differences)

    def _of_data(self, data: Any) -> Iterator[str]:
        if self.data is not None:
            yield from _differences(dict(self.data), data, "data", partly=False)
        if self.data_contains is not None:
            yield from _differences(dict(self.data_contains), data, "data", partly=True)

    def _of_options(self, job: Job) -> Iterator[str]:
        for name in ("queue", "priority", "status"):
            wanted, actual = getattr(self, name), getattr(job, name)
            if wanted is not None and wanted != actual:
                yield f"{name} is {written(actual)}, not {written(wanted)}"
        if self.run_after is not None:
            after = self.run_after
            due = job.created_at + after if isinstance(after, timedelta) else after
            if abs(job.run_after - due) > self.tolerance:
                yield f"run_after is {written(job.run_after)}, not {written(due)}"
        if missing := set(self.tags) - set(job.tags):
            yield f"tags lack {', '.join(map(written, sorted(missing)))}"


def arguments(job: Job) -> Any:
    """The data as a test knows them."""
    data = job.data
    if not isinstance(data, dict) or BESIDES not in data:
        return data
    return {key: value for key, value in data.items() if key != BESIDES}


def shown(job: Job) -> str:
    """A job in one line."""
    later = job.run_after - job.created_at
    parts = [
        job.job_type,
        f"data={written(arguments(job))}",
        f"queue={written(job.queue)}",
    ]
    if job.priority:
        parts.append(f"priority={job.priority}")
    if later > timedelta(seconds=1):
        parts.append(f"run_after={written(job.run_after)}")
    if job.tags:
        parts.append(f"tags={written(list(job.tags))}")
    return f"{' '.join(parts)} ({job.status})"


def written(value: Any) -> str:
    """A value as a test would write it."""
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, timedelta):
        return str(value)
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 300 else text[:300] + "…"


def _differences(wanted: Any, actual: Any, path: str, *, partly: bool) -> Iterator[str]:
    """Where ``actual`` is not ``wanted``; ``partly``: it may have more keys."""
    if not (isinstance(wanted, Mapping) and isinstance(actual, dict)):
        if wanted != actual:
            yield f"{path} is {written(actual)}, not {written(wanted)}"
        return
    for key, value in wanted.items():
        if key in actual:
            inner = f"{path}[{written(key)}]"
            yield from _differences(value, actual[key], inner, partly=partly)
        else:
            yield f"{path} lacks {written(key)}"
    if not partly:
        for key in actual.keys() - wanted.keys():
            yield f"{path} has {written(key)} as well"
