"""Judges the job queue by thresholds, for monitoring systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Final, NamedTuple

from django_jobqueue.domain.states import WorkerState
from django_jobqueue.stats.conditions import ENOUGH, MANY_CRASHES, waits_long
from django_jobqueue.stats.current_state import Present, unpaused
from django_jobqueue.stats.totals import Depths
from django_jobqueue.store.reading.claimers import is_alive, is_claiming
from django_jobqueue.store.reading.failure_stats import Crashes
from django_jobqueue.store.reading.stats import Recent
from django_jobqueue.text import numbers

MOST: Final = 20  # queues, and job types, of which figures are given


class Thresholds(NamedTuple):
    """The limits of a healthy queue."""

    max_age: float  # seconds that the oldest ready job of a queue may have waited
    max_failed: float  # percent of the finished jobs of a job type
    max_crashes: int = MANY_CRASHES - 1  # that may be a job type's fault, lately
    max_ready: int | None = None  # ready jobs of a queue; None is any number
    min_workers: int = 1  # that claim jobs; of each of the queues if they are named
    queues: frozenset[str] | None = None  # that are judged; None is all of them

    def covers(self, queue: str) -> bool:
        """True if this queue is judged."""
        return self.queues is None or queue in self.queues


class Problem(NamedTuple):
    """Something beyond a threshold. ``code`` is stable, for programs."""

    code: str  # few_workers, old_job, many_ready, many_failed, many_crashes
    message: str
    queue: str | None = None
    job_type: str | None = None


class Figure(NamedTuple):
    """A value beside its threshold, which is a lower one for workers."""

    name: str  # workers, oldest, ready, failed, crashes
    of: str | None  # the queue, or the job type of the last two; None is all of them
    value: float
    unit: str = ""  # s, %
    limit: float | None = None


class Health(NamedTuple):
    """The judgement, and what it is based on."""

    problems: list[Problem]  # the most important first
    figures: list[Figure]
    summary: str  # if there is no problem

    @property
    def is_healthy(self) -> bool:
        """True if everything is within the thresholds."""
        return not self.problems


def judge(
    present: Present,
    recent: Sequence[Recent],
    crashes: Mapping[str, Crashes],
    thresholds: Thresholds,
) -> Health:
    """Compare the present state, what finished recently, and the crashes of each job
    type with the thresholds.

    Jobs of paused queues and job types are left out: an operator wants them to wait.
    """
    depths = _depths_by_queue(present, thresholds)
    workers = _workers_by_queue(present, thresholds)
    failed = _failed_by_type(recent, thresholds)
    types = {one.job_type for one in recent if thresholds.covers(one.queue)}
    crashed = [
        (name, count)
        for name, count in crashes.items()
        if thresholds.queues is None or name in types
    ]
    problems = [
        *_few_workers(present, workers, thresholds),
        *_waiting(depths, thresholds),
        *_failing(failed, thresholds),
        *_crashing(crashed, thresholds),
    ]
    figures = [
        *_worker_figures(workers, thresholds),
        *_depth_figures(depths, thresholds),
        *_failure_figures(failed, thresholds),
        *(
            Figure("crashes", name, count.suspected, limit=thresholds.max_crashes)
            for name, count in crashed[:MOST]
            if count.suspected
        ),
    ]
    return Health(problems, figures, _summary(present, depths))


def _depths_by_queue(present: Present, thresholds: Thresholds) -> dict[str, Depths]:
    """The jobs that nobody paused; the queue whose job has waited longest first."""
    depths = {queue: Depths() for queue in sorted(thresholds.queues or ())}
    for depth in unpaused(present):
        if thresholds.covers(depth.queue):
            depths.setdefault(depth.queue, Depths()).add(depth)
    return dict(sorted(depths.items(), key=lambda one: -(one[1].oldest or 0.0)))


def _workers_by_queue(
    present: Present, thresholds: Thresholds
) -> dict[str | None, int]:
    """The workers that claim jobs, of each queue that was named, or altogether."""
    workers = [worker for worker in present.workers if is_claiming(worker)]
    if thresholds.queues is None:
        return {None: len(workers)}
    return {
        queue: sum(
            worker.queues is None or queue in worker.queues for worker in workers
        )
        for queue in sorted(thresholds.queues)
    }


def _failed_by_type(
    recent: Iterable[Recent], thresholds: Thresholds
) -> list[tuple[str, int, float]]:
    """Job type, finished jobs, and percent of them that failed; the worst first."""
    finished: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    for one in recent:
        if thresholds.covers(one.queue):
            finished[one.job_type] += one.succeeded + one.failed
            failed[one.job_type] += one.failed
    shares = [
        (name, count, 100 * failed[name] / count)
        for name, count in finished.items()
        if count >= ENOUGH
    ]
    return sorted(shares, key=lambda one: (-one[2], one[0]))


def _few_workers(
    present: Present, workers: dict[str | None, int], thresholds: Thresholds
) -> Iterator[Problem]:
    draining = sum(
        is_alive(worker) and worker.state == WorkerState.DRAINING
        for worker in present.workers
    )
    for queue, count in workers.items():
        if count >= thresholds.min_workers:
            continue
        text = "no worker claims jobs" if not count else f"{count} of the "
        if count:
            text += f"{thresholds.min_workers} workers that are wanted"
        if draining:
            text += f" ({draining} draining)"
        yield Problem("few_workers", _of(queue, text), queue)


def _waiting(depths: dict[str, Depths], thresholds: Thresholds) -> Iterator[Problem]:
    for queue, depth in depths.items():
        if waits_long(depth.oldest, thresholds.max_age):
            text = f"oldest ready job {numbers.span(depth.oldest or 0.0)}"
            yield Problem("old_job", _of(queue, text), queue)
    if thresholds.max_ready is None:
        return
    for queue, depth in depths.items():
        if depth.ready > thresholds.max_ready or "ready" in depth.at_least:
            text = f"{_ready(depth)} ready jobs"
            yield Problem("many_ready", _of(queue, text), queue)


def _failing(
    failed: list[tuple[str, int, float]], thresholds: Thresholds
) -> Iterator[Problem]:
    for name, finished, percent in failed:
        if percent > thresholds.max_failed:
            share = numbers.percent(percent / 100)
            text = f"{share} of {numbers.number(finished)} jobs failed"
            yield Problem("many_failed", _of(name, text), job_type=name)


def _crashing(
    crashed: Iterable[tuple[str, Crashes]], thresholds: Thresholds
) -> Iterator[Problem]:
    for name, count in crashed:
        if not count.is_suspected(thresholds.max_crashes + 1):
            continue
        if count.by_culprits:
            attempts = _plural(count.by_culprits, "attempt")
            text = f"its jobs kill their workers, also alone: {attempts}"
        else:
            deaths = _plural(count.unexplained, "worker")
            text = f"{deaths} died while its jobs ran, and perhaps by them"
        yield Problem("many_crashes", _of(name, text), job_type=name)


def _worker_figures(
    workers: dict[str | None, int], thresholds: Thresholds
) -> Iterator[Figure]:
    for queue, count in workers.items():
        yield Figure("workers", queue, count, limit=thresholds.min_workers)


def _depth_figures(
    depths: dict[str, Depths], thresholds: Thresholds
) -> Iterator[Figure]:
    oldest = max((depth.oldest or 0.0 for depth in depths.values()), default=0.0)
    ready = sum(depth.ready for depth in depths.values())
    yield Figure("oldest", None, round(oldest, 1), "s", thresholds.max_age)
    yield Figure("ready", None, ready)
    for queue, depth in list(depths.items())[:MOST]:
        age = round(depth.oldest or 0.0, 1)
        yield Figure("oldest", queue, age, "s", thresholds.max_age)
        yield Figure("ready", queue, depth.ready, limit=thresholds.max_ready)


def _failure_figures(
    failed: list[tuple[str, int, float]], thresholds: Thresholds
) -> Iterator[Figure]:
    for name, _finished, percent in nlargest(MOST, failed, key=lambda one: one[2]):
        yield Figure("failed", name, round(percent, 2), "%", thresholds.max_failed)


def _summary(present: Present, depths: dict[str, Depths]) -> str:
    workers = sum(map(is_alive, present.workers))
    total, oldest = Depths(), 0.0
    for depth in depths.values():
        total.ready += depth.ready
        total.at_least |= depth.at_least
        oldest = max(oldest, depth.oldest or 0.0)
    text = f"{_plural(workers, 'worker')}, {_ready(total)} ready "
    text += "job" if total.ready == 1 else "jobs"
    return f"{text}, the oldest for {numbers.span(oldest)}" if total.ready else text


def _ready(depth: Depths) -> str:
    if "ready" in depth.at_least:
        return f"{numbers.number(depth.ready)}+"
    return numbers.number(depth.ready)


def _plural(count: int, noun: str) -> str:
    return f"{numbers.number(count)} {noun if count == 1 else noun + 's'}"


def _of(name: str | None, text: str) -> str:
    return text if name is None else f"{name}: {text}"
