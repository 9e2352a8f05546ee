"""Warns operators of jobs that no worker will claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext_lazy, ngettext_lazy

from django_jobqueue.stats.current_state import Present
from django_jobqueue.store.reading.claimers import Claimer, is_alive
from django_jobqueue.store.reading.stats import CAP, Depth
from django_jobqueue.text import numbers

NO_WORKER: Final = gettext_lazy(
    "No worker is alive. Start one with manage.py runworkers."
)
NO_WORKER_AND_JOBS: Final = ngettext_lazy(
    "No worker is alive, and %(jobs)s job waits. Start one with manage.py runworkers.",
    "No worker is alive, and %(jobs)s jobs wait. Start one with manage.py runworkers.",
    "count",
)
ALL_PARKED: Final = gettext_lazy(
    "No worker is alive: operators have parked or drained the hosts. See manage.py "
    "jobqueue hosts."
)
ALL_PARKED_AND_JOBS: Final = ngettext_lazy(
    "No worker is alive, and %(jobs)s job waits: operators have parked or drained the "
    "hosts. See manage.py jobqueue hosts.",
    "No worker is alive, and %(jobs)s jobs wait: operators have parked or drained the "
    "hosts. See manage.py jobqueue hosts.",
    "count",
)
ALL_DRAINING: Final = ngettext_lazy(
    "The only living worker is draining: no further job is claimed.",
    "All living workers are draining: no further job is claimed.",
    "count",
)

# The second of each pair is for when some of the living workers drain.
QUEUE_NOT_SERVED: Final = (
    ngettext_lazy(
        "%(jobs)s job waits in queue %(queue)r, which no living worker serves.",
        "%(jobs)s jobs wait in queue %(queue)r, which no living worker serves.",
        "count",
    ),
    ngettext_lazy(
        "%(jobs)s job waits in queue %(queue)r, which no living worker serves, "
        "draining ones aside.",
        "%(jobs)s jobs wait in queue %(queue)r, which no living worker serves, "
        "draining ones aside.",
        "count",
    ),
)
TYPE_NOT_KNOWN: Final = (
    ngettext_lazy(
        "%(jobs)s job waits of type %(type)r, which no running worker handles.",
        "%(jobs)s jobs wait of type %(type)r, which no running worker handles.",
        "count",
    ),
    ngettext_lazy(
        "%(jobs)s job waits of type %(type)r, which no running worker handles, "
        "draining ones aside.",
        "%(jobs)s jobs wait of type %(type)r, which no running worker handles, "
        "draining ones aside.",
        "count",
    ),
)
NOT_TOGETHER: Final = (
    ngettext_lazy(
        "%(jobs)s job waits of type %(type)r in queue %(queue)r: no living worker "
        "both serves the queue and knows the type.",
        "%(jobs)s jobs wait of type %(type)r in queue %(queue)r: no living worker "
        "both serves the queue and knows the type.",
        "count",
    ),
    ngettext_lazy(
        "%(jobs)s job waits of type %(type)r in queue %(queue)r: no living worker "
        "both serves the queue and knows the type, draining ones aside.",
        "%(jobs)s jobs wait of type %(type)r in queue %(queue)r: no living worker "
        "both serves the queue and knows the type, draining ones aside.",
        "count",
    ),
)


class Notice(NamedTuple):
    """Something that is wrong. ``code`` is stable, for programs."""

    code: str
    message: str
    queue: str | None = None
    job_type: str | None = None
    jobs: int = 0  # that wait


def notices(present: Present) -> list[Notice]:
    """The warnings, the most important first."""
    living = [worker for worker in present.workers if is_alive(worker)]
    waiting = [depth for depth in present.depths if depth.ready or depth.later]
    if not living:
        return [_no_worker(waiting, are_parked=present.parked_hosts > 0)]
    claim = present.claimers()
    if not claim:
        return [Notice("all_draining", ALL_DRAINING % {"count": len(living)})]
    some_drain = len(claim) < len(living)
    return list(_unclaimed(waiting, claim, some_drain))


def depth_text(count: int) -> str:
    """A depth as it is shown: none is counted above the cap."""
    return numbers.at_least(count, CAP)


def _no_worker(waiting: list[Depth], *, are_parked: bool) -> Notice:
    jobs = sum(depth.ready for depth in waiting)  # the others would wait anyway
    if jobs:
        text = _sentence(
            ALL_PARKED_AND_JOBS if are_parked else NO_WORKER_AND_JOBS, jobs
        )
    else:
        text = str(ALL_PARKED if are_parked else NO_WORKER)
    return Notice("no_worker", text, jobs=jobs)


def _unclaimed(
    waiting: list[Depth], claimers: list[Claimer], some_drain: bool
) -> Iterator[Notice]:
    known = frozenset[str]().union(*(claimer.job_types for claimer in claimers))

    @cache
    def is_served(queue: str) -> bool:
        return any(claimer.serves(queue) for claimer in claimers)

    def is_known(job_type: str) -> bool:
        return job_type in known

    for queue, jobs in _sums(waiting, lambda d: d.queue, is_served):
        text = _sentence(QUEUE_NOT_SERVED[some_drain], jobs, queue=queue)
        yield Notice("queue_not_served", text, queue=queue, jobs=jobs)
    for name, jobs in _sums(waiting, lambda d: d.job_type, is_known):
        text = _sentence(TYPE_NOT_KNOWN[some_drain], jobs, type=name)
        yield Notice("job_type_not_known", text, job_type=name, jobs=jobs)
    for depth in sorted(waiting, key=_jobs, reverse=True):
        queue, name = depth.queue, depth.job_type
        if not is_served(queue) or not is_known(name):
            continue
        if any(claimer.claims(queue, name) for claimer in claimers):
            continue
        jobs = _jobs(depth)
        text = _sentence(NOT_TOGETHER[some_drain], jobs, type=name, queue=queue)
        yield Notice("queue_not_served_for_job_type", text, queue, name, jobs)


def _sums(
    waiting: list[Depth], key: Callable[[Depth], str], is_well: Callable[[str], bool]
) -> list[tuple[str, int]]:
    """The number of waiting jobs under each affected name; the largest first."""
    sums: Counter[str] = Counter()
    for depth in waiting:
        if not is_well(key(depth)):
            sums[key(depth)] += _jobs(depth)
    return sorted(sums.items(), key=lambda one: (-one[1], one[0]))


def _jobs(depth: Depth) -> int:
    return depth.ready + depth.later


def _sentence(text: Any, jobs: int, **names: str) -> str:
    """The sentence for this many jobs, which were counted up to the cap."""
    content: str = text % {"count": jobs, "jobs": depth_text(jobs), **names}
    return content
