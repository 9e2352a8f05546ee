"""The figures of each job type, of each queue, and of everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django_jobqueue.domain.histogram import BUCKETS, added, percentile
from django_jobqueue.store.reading.history import Counts, Finished
from django_jobqueue.store.reading.stats import CAP, Depth, Recent

# There may be thousands of lines, of which fifty get times.
NOTHING_TIMED: Final = (0,) * BUCKETS
CAPPED: Final = ("ready", "later", "retrying")  # counts of depths
CountsByPlace = Mapping[tuple[str, str], Counts]  # by job type and queue


@dataclass(slots=True)
class Depths:
    """The numbers of waiting and running jobs. A number at its cap is a minimum."""

    ready: int = 0
    later: int = 0
    retrying: int = 0
    running: int = 0
    oldest: float | None = None  # seconds that the oldest ready job has waited
    at_least: frozenset[str] = frozenset()  # names of counts

    def add(self, depth: Depth) -> None:
        """Count these, too."""
        self.ready += min(depth.ready, CAP)
        self.later += min(depth.later, CAP)
        self.retrying += min(depth.retrying, CAP)
        self.running += depth.running
        if depth.later > CAP or depth.ready > CAP:
            self.at_least |= {name for name in CAPPED if getattr(depth, name) > CAP}
        self._wait(depth.oldest)

    def add_all(self, other: Depths) -> None:
        """Count those of another line, too."""
        self.ready += other.ready
        self.later += other.later
        self.retrying += other.retrying
        self.running += other.running
        self.at_least |= other.at_least
        self._wait(other.oldest)

    def _wait(self, oldest: float | None) -> None:
        if oldest is not None and (self.oldest is None or oldest > self.oldest):
            self.oldest = oldest


@dataclass(slots=True)
class Line:
    """The waiting, running and finished jobs of one name."""

    name: str
    depths: Depths = field(default_factory=Depths)
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    other: int = 0
    run: Sequence[int] = NOTHING_TIMED
    wait: Sequence[int] = NOTHING_TIMED
    trend: Sequence[Sequence[int]] = ()  # finished, failed

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
        """True if nothing waits, runs or happened."""
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

    def count(self, other: Counts | Recent | Line) -> None:
        """Count these, too."""
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.retried += other.retried
        self.other += other.other

    def time(self, recent: Recent) -> None:
        """Add these run times and waits."""
        self.run = added([self.run, recent.run])
        self.wait = added([self.wait, recent.wait])

    def add(self, recent: Recent) -> None:
        """Count what happened there, too, with its times."""
        self.count(recent)
        self.time(recent)

    def draw(
        self, finished: Iterable[Finished], start: datetime, step: timedelta, steps: int
    ) -> None:
        """Make the trend, from this time on."""
        trend = [[0, 0] for _ in range(steps)]
        for one in finished:
            place = (one.start - start) // step
            if 0 <= place < steps:
                trend[place][0] += one.finished
                trend[place][1] += one.failed
        self.trend = trend


class Lines(NamedTuple):
    """The lines that are shown, by name, and how many are not."""

    shown: list[Line]
    hidden: int  # with fewer failures and jobs
    idle: int  # without any


def by_type(depths: Iterable[Depth], counts: CountsByPlace) -> dict[str, Line]:
    """A line for each job type that has jobs or had some, without its details."""
    return _lines(depths, counts, lambda queue, job_type: job_type)


def by_queue(depths: Iterable[Depth], counts: CountsByPlace) -> dict[str, Line]:
    """A line for each queue that has jobs or had some, without its details."""
    return _lines(depths, counts, lambda queue, job_type: queue)


def total(lines: Iterable[Line]) -> Line:
    """One line of all these, without their details."""
    whole = Line("")
    for line in lines:
        whole.depths.add_all(line.depths)
        whole.count(line)
    return whole


def busiest(
    lines: dict[str, Line], paused: Collection[str], names: Iterable[str], most: int
) -> Lines:
    """The lines that are paused or not idle, by name; of more than ``most`` those with
    most failures and jobs. ``names`` are all there are, as far as that is known."""
    busy = [line for line in lines.values() if not line.is_idle or line.name in paused]
    known = {line.name for line in busy}
    busy += [Line(name) for name in sorted({*paused} - known)]
    shown = sorted(busy, key=_weight, reverse=True)[:most]
    return Lines(
        shown=sorted(shown, key=lambda line: line.name),
        hidden=len(busy) - len(shown),
        idle=len({*names, *lines} - {line.name for line in busy}),
    )


def _weight(line: Line) -> tuple[int, ...]:
    """The order where there are too many: failed, waiting, running, done."""
    depths = line.depths
    waiting = depths.ready + depths.retrying
    return line.failed, waiting, depths.running, line.finished


def _lines(
    depths: Iterable[Depth], counts: CountsByPlace, name_of: Callable[[str, str], str]
) -> dict[str, Line]:
    by_name: dict[str, Line] = {}

    def line(name: str) -> Line:
        if name not in by_name:
            by_name[name] = Line(name)
        return by_name[name]

    for depth in depths:
        line(name_of(depth.queue, depth.job_type)).depths.add(depth)
    for (job_type, queue), one in counts.items():
        line(name_of(queue, job_type)).count(one)
    return by_name
