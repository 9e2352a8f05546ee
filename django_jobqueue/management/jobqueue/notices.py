"""What an operator should be told about jobs that nobody will claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django_jobqueue.management.jobqueue.console import counted
from django_jobqueue.management.jobqueue.figures import Figures, is_alive
from django_jobqueue.states import WorkerState
from django_jobqueue.store.stats import CAP, Depth


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is wrong. ``code`` is stable, for programs."""

    code: str
    message: str
    queue: str | None = None
    job_type: str | None = None


@dataclass(frozen=True, slots=True)
class Claimer:
    """What a living worker that claims would take. ``queues`` None is every one."""

    queues: frozenset[str] | None
    job_types: frozenset[str]

    def serves(self, queue: str) -> bool:
        """Whether it claims from this queue."""
        return self.queues is None or queue in self.queues


def notices(figures: Figures) -> list[Notice]:
    """What is wrong, most important first."""
    living = [worker for worker in figures.workers if is_alive(worker)]
    waiting = [depth for depth in figures.depths if depth.ready or depth.later]
    if not living:
        return [_no_worker(waiting)]
    claimers = [
        Claimer(
            None if worker.queues is None else frozenset(worker.queues),
            frozenset(figures.known.get(worker.id, ())),
        )
        for worker in living
        if worker.state == WorkerState.RUNNING
    ]
    if not claimers:
        text = f"{_all_of(len(living))} draining: no further job is claimed."
        return [Notice("all_draining", text)]
    aside = ", draining ones aside" if len(claimers) < len(living) else ""
    return list(_unclaimed(waiting, claimers, aside))


def depth_text(count: int) -> str:
    """A depth as it is shown: none is counted above the cap."""
    return f"{CAP:,}+" if count > CAP else f"{count:,}"


def _all_of(number: int) -> str:
    return "The only living worker is" if number == 1 else "All living workers are"


def _no_worker(waiting: list[Depth]) -> Notice:
    jobs = sum(depth.ready + depth.later for depth in waiting)
    wait = f", and {_jobs(jobs)}" if jobs else ""
    return Notice(
        "no_worker",
        f"No worker is alive{wait}. Start one with manage.py runworkers.",
    )


def _unclaimed(
    waiting: list[Depth], claimers: list[Claimer], aside: str
) -> Iterator[Notice]:
    def is_served(queue: str) -> bool:
        return any(claimer.serves(queue) for claimer in claimers)

    def is_known(job_type: str) -> bool:
        return any(job_type in claimer.job_types for claimer in claimers)

    for queue, jobs in _sums(waiting, lambda d: d.queue, is_served):
        text = f"{_jobs(jobs)} in queue {queue!r}, which no living worker serves"
        yield Notice("queue_not_served", f"{text}{aside}.", queue=queue)
    for name, jobs in _sums(waiting, lambda d: d.job_type, is_known):
        text = f"{_jobs(jobs)} of type {name!r}, which no living worker knows"
        yield Notice("job_type_not_known", f"{text}{aside}.", job_type=name)
    for depth in waiting:
        queue, name = depth.queue, depth.job_type
        if not is_served(queue) or not is_known(name):
            continue
        if any(c.serves(queue) and name in c.job_types for c in claimers):
            continue
        yield Notice(
            "queue_not_served_for_job_type",
            f"{_jobs(depth.ready + depth.later)} of type {name!r} in queue {queue!r}: "
            f"no living worker both serves the queue and knows the type{aside}.",
            queue=queue,
            job_type=name,
        )


def _sums(
    waiting: list[Depth],
    key: Callable[[Depth], str],
    is_well: Callable[[str], bool],
) -> list[tuple[str, int]]:
    """How many jobs wait under each name that is not well."""
    found: Counter[str] = Counter()
    for depth in waiting:
        if not is_well(key(depth)):
            found[key(depth)] += depth.ready + depth.later
    return sorted(found.items())


def _jobs(count: int) -> str:
    if count > CAP:
        return f"{CAP:,}+ jobs wait"
    return f"{counted(count, 'job')} {'waits' if count == 1 else 'wait'}"
