"""The figures of each job type, of each queue, and of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django_jobqueue.domain.histogram import BUCKETS, added, percentile
from django_jobqueue.stats.overview import Overview, Past
from django_jobqueue.stats.time_window import Window
from django_jobqueue.store.reading.history import Finished
from django_jobqueue.store.reading.stats import CAP, Depth, Recent


@dataclass(slots=True)
class Depths:
    """The numbers of waiting and running jobs. A number at its cap is a minimum."""

    ready: int = 0
    later: int = 0
    retrying: int = 0
    running: int = 0
    oldest: float | None = None  # seconds that the oldest ready job has waited
    at_least: set[str] = field(default_factory=set)  # names of counts

    def add(self, depth: Depth) -> None:
        """Count these, too."""
        for name in ("ready", "later", "retrying", "running"):
            count = getattr(depth, name)
            if count > CAP and name != "running":
                self.at_least.add(name)
                count = CAP
            setattr(self, name, getattr(self, name) + count)
        if depth.oldest is not None:
            self.oldest = max(self.oldest or 0.0, depth.oldest)


@dataclass(slots=True)
class Line:
    """The waiting, running and finished jobs of one name."""

    name: str
    depths: Depths = field(default_factory=Depths)
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0
    run: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    wait: list[int] = field(default_factory=lambda: [0] * BUCKETS)
    trend: list[list[int]] = field(default_factory=list)  # finished, failed

    @property
    def finished(self) -> int:
        """Jobs that succeeded or failed for good."""
        return self.succeeded + self.failed

    @property
    def failed_share(self) -> float | None:
        """The share of finished jobs that failed (0…1); None if none finished."""
        return self.failed / self.finished if self.finished else None

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits, runs or happened."""
        depths = self.depths
        return not (
            depths.ready
            or depths.later
            or depths.running
            or self.finished
            or self.retried
            or self.other
        )

    def run_time(self, share: float) -> float | None:
        """A percentile of the run times, in seconds."""
        return percentile(self.run, share)

    def wait_time(self, share: float) -> float | None:
        """A percentile of the waits, in seconds."""
        return percentile(self.wait, share)

    def add(self, recent: Recent) -> None:
        """Count what happened there, too."""
        for name in ("succeeded", "failed", "retried", "other"):
            setattr(self, name, getattr(self, name) + getattr(recent, name))
        self.run = added([self.run, recent.run])
        self.wait = added([self.wait, recent.wait])


def by_type(overview: Overview) -> list[Line]:
    """A line for each job type that was ever declared or has jobs, by name."""
    names = overview.now.limits
    return _lines(overview, names, lambda one: one.job_type)


def by_queue(overview: Overview) -> list[Line]:
    """A line for each queue that is paused, has jobs or had some in the window, by
    name."""
    closed = overview.now.present.closed
    names = [pause.name for pause in closed if pause.what == "queue"]
    return _lines(overview, names, lambda one: one.queue)


def total(overview: Overview) -> Line:
    """One line of everything."""
    return _lines(overview, [""], lambda one: "")[0]


def _lines(
    overview: Overview, names: Iterable[str], key: Callable[[Any], str]
) -> list[Line]:
    window, past = overview.window, overview.past
    by_name = {name: _empty(name, window) for name in names}

    def line(one: Depth | Recent | Finished) -> Line:
        name = key(one)
        return by_name.setdefault(name, _empty(name, window))

    for depth in overview.now.present.depths:
        line(depth).depths.add(depth)
    for recent in past.recent:
        line(recent).add(recent)
    for finished in past.trends:
        _add_to_trend(line(finished).trend, finished, past, window.trend_step)
    return [by_name[name] for name in sorted(by_name)]


def _empty(name: str, window: Window) -> Line:
    steps = -(-window.length // window.trend_step)
    return Line(name, trend=[[0, 0] for _ in range(steps)])


def _add_to_trend(
    trend: list[list[int]], finished: Finished, past: Past, step: timedelta
) -> None:
    place = (finished.start - past.start) // step
    if 0 <= place < len(trend):
        trend[place][0] += finished.finished
        trend[place][1] += finished.failed
