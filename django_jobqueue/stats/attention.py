"""Lists what needs attention, by rules; the most urgent first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nlargest
from itertools import groupby
from typing import Final, TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from django_jobqueue import rooms
from django_jobqueue.conf import conf
from django_jobqueue.domain.states import WorkerState, WorkState
from django_jobqueue.models import FailureGroup
from django_jobqueue.stats.conditions import (
    crashing_text,
    crashing_types,
    failing_text,
    is_old,
    new_crash_text,
    old_transaction_text,
    waits_long,
)
from django_jobqueue.stats.current_state import unpaused
from django_jobqueue.stats.overview import LATELY, Now
from django_jobqueue.stats.unclaimed_jobs import Notice, depth_text, notices
from django_jobqueue.store.reading.claimers import has_lapsed, is_alive
from django_jobqueue.store.reading.failure_stats import LOST
from django_jobqueue.store.reading.stats import Depth
from django_jobqueue.text import numbers
from django_jobqueue.text.numbers import span

# The most urgent first: what keeps jobs from being done, then what fails, and then what
# only waits for somebody.
CODES: Final = (
    "no_worker",
    "all_draining",
    "queue_not_served",
    "job_type_not_known",
    "queue_not_served_for_job_type",
    "worker_lapsed",
    "slow",
    "failing",
    "crashing",
    "old_transaction",
    "regressed",
    "bulk_failed",
    "worker_lost",
    "new_failure",
    "bulk_paused",
    "queue_paused",
    "job_type_paused",
    "rollups_lag",
)
MOST: Final = 5  # of one kind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that needs attention, and where to look at it. ``code`` is stable."""

    code: str
    message: str
    model: str = ""  # in lower case, as addresses have it
    key: object = None  # of the object; None is the list
    query: dict[str, str] = field(default_factory=dict)  # of the list
    is_bad: bool = True  # jobs are not done, or fail
    weight: float = 0.0  # among its kind: the greater, the worse
    others: int = 0  # of the same kind, not told
    after: str = ""  # the code of the core that is as urgent, for one of a room

    @property
    def rank(self) -> tuple[bool, int, bool, str, float]:
        """The most urgent is the least."""
        place = CODES.index(self.after or self.code)
        return not self.is_bad, place, bool(self.after), self.code, -self.weight


def concerns(now: Now) -> list[Concern]:
    """The problems and open decisions, the most urgent first; of each sort the worst
    few."""
    unordered = [
        *map(_of_notice, notices(now.present)),
        *_lapsed(now),
        *_lost(now),
        *_slow(now),
        *_failing(now),
        *_crashing(now),
        *_old(now),
        *_groups(now),
        *_operations(now),
        *(one for some in rooms.offered("concerns") for one in some(now)),
        *_closed(now),
        *_lagging(now),
    ]
    return list(_shortened(sorted(unordered, key=lambda concern: concern.rank)))


def _shortened(ordered: Iterable[Concern]) -> Iterator[Concern]:
    for _code, same in groupby(ordered, lambda concern: concern.code):
        listed = list(same)
        *first, last = listed[:MOST]
        yield from first
        left = len(listed) - len(first) - 1 + sum(one.others for one in listed)
        yield replace(last, others=left)


def _worst(items: Sequence[T], weight: Callable[[T], float]) -> Iterator[tuple[T, int]]:
    """The few that weigh most, and with the last of them how many others there are:
    there may be thousands, and only a few are put into words."""
    worst = nlargest(MOST, items, key=weight)
    for number, item in enumerate(worst, 1):
        yield item, len(items) - len(worst) if number == len(worst) else 0


def _of_notice(notice: Notice) -> Concern:
    if notice.queue is None and notice.job_type is None:
        return Concern(notice.code, notice.message, "worker", weight=notice.jobs)
    given = {"queue": notice.queue, "job_type": notice.job_type}
    query = {name: value for name, value in given.items() if value is not None}
    return Concern(
        notice.code, notice.message, "queuedjob", query=query, weight=notice.jobs
    )


def _lapsed(now: Now) -> Iterator[Concern]:
    for worker in filter(has_lapsed, now.present.workers):
        text = ngettext(
            "Worker %(name)s has not renewed its lease for %(time)s; %(count)s job "
            "that it ran will be taken over.",
            "Worker %(name)s has not renewed its lease for %(time)s; %(count)s jobs "
            "that it ran will be taken over.",
            worker.running,
        )
        values = {"name": worker.name, "count": numbers.number(worker.running)}
        text %= {**values, "time": span(-worker.lease)}
        place = ("worker", worker.id)
        yield Concern("worker_lapsed", text, *place, weight=worker.running)


def _lost(now: Now) -> Iterator[Concern]:
    for worker in now.present.workers:
        if worker.state == WorkerState.LOST:
            text = _("Worker %(name)s was lost in the last ten minutes: %(end)s")
            text %= {"name": worker.name, "end": worker.end or _("nobody knows why")}
            yield Concern("worker_lost", text, "worker", worker.id, is_bad=False)


def _slow(now: Now) -> Iterator[Concern]:
    """Lanes that are served, and yet have waited for long."""
    if not any(is_alive(worker) for worker in now.present.workers):
        return
    slow = [
        depth
        for depth in unpaused(now.present)
        if waits_long(depth.oldest, conf.alert_wait)
    ]
    for depth, others in _worst(slow, _age):
        text = ngettext(
            "%(jobs)s job of type %(type)s is ready in queue %(queue)s; the oldest "
            "has waited for %(time)s.",
            "%(jobs)s jobs of type %(type)s are ready in queue %(queue)s; the oldest "
            "has waited for %(time)s.",
            depth.ready,
        )
        values = {"jobs": depth_text(depth.ready), "time": span(_age(depth))}
        query = {"queue": depth.queue, "job_type": depth.job_type}
        text %= {**values, "queue": depth.queue, "type": depth.job_type}
        yield Concern(
            "slow", text, "queuedjob", query=query, weight=_age(depth), others=others
        )


def _age(depth: Depth) -> float:
    return depth.oldest or 0.0


def _failing(now: Now) -> Iterator[Concern]:
    failing = list(now.failing.types.items())
    for (name, counts), others in _worst(failing, lambda one: one[1].failed_share or 0):
        text = failing_text(name, counts)
        query = {"status": "failed", "job_type": name}
        yield Concern(
            "failing",
            text,
            "archivedjob",
            query=query,
            weight=counts.failed_share or 0,
            others=others,
        )


def _crashing(now: Now) -> Iterator[Concern]:
    crashing = list(crashing_types(now.crashes).items())
    for (name, crashes), others in _worst(crashing, lambda one: one[1].rank):
        text, query = crashing_text(name, crashes), {"q": name}
        yield Concern(
            "crashing",
            text,
            "failuregroup",
            query=query,
            weight=crashes.rank,
            others=others,
        )


def _old(now: Now) -> Iterator[Concern]:
    transaction = now.oldest_transaction
    if transaction is not None and is_old(transaction):
        yield Concern("old_transaction", old_transaction_text(transaction))


def _groups(now: Now) -> Iterator[Concern]:
    regressed = [g for g in now.groups if _is_since(g.regressed_at, now)]
    for group in regressed:
        text = _(
            "A resolved failure is back: %(failure)s, first seen again %(since)s ago, "
            "last %(time)s ago."
        )
        since = group.regressed_at or group.last_seen
        yield _group("regressed", text, group, since, now)
    for group in now.groups:
        if group not in regressed and not _is_explained(group, now):
            text = _(
                "A new failure: %(failure)s, first seen %(since)s ago, last %(time)s "
                "ago."
            )
            if crash := new_crash_text(group.error_class, group.frame):
                text = crash.replace("%", "%%")
            yield _group("new_failure", text, group, group.first_seen, now)


def _is_explained(group: FailureGroup, now: Now) -> bool:
    """True if a known job explains its crashes, or they were long ago."""
    crashes = now.crashes.get(group.frame)
    return group.error_class == LOST and not (crashes and crashes.unexplained)


def _is_since(moment: datetime | None, now: Now) -> bool:
    return moment is not None and moment >= now.present.time - LATELY


def _group(
    code: str, text: str, group: FailureGroup, since: datetime, now: Now
) -> Concern:
    first, seconds = (
        max(0.0, (now.present.time - moment).total_seconds())
        for moment in (since, group.last_seen)
    )
    text %= {"failure": str(group), "since": span(first), "time": span(seconds)}
    is_bad = code == "regressed"
    key = group.fingerprint
    weight = -seconds
    return Concern(code, text, "failuregroup", key, is_bad=is_bad, weight=weight)


def _operations(now: Now) -> Iterator[Concern]:
    for operation in now.operations:
        values = {"what": operation.get_kind_display(), "who": operation.created_by}
        if operation.state == WorkState.FAILED and _is_since(
            operation.finished_at or operation.created_at, now
        ):
            text = _("A bulk operation (%(what)s) of %(who)s failed.") % values
            yield Concern("bulk_failed", text, "bulkoperation", operation.pk)
    for operation in now.operations:
        values = {"what": operation.get_kind_display(), "who": operation.created_by}
        if operation.state == WorkState.PAUSED:
            text = _("A bulk operation (%(what)s) of %(who)s is paused.") % values
            place = ("bulkoperation", operation.pk)
            yield Concern("bulk_paused", text, *place, is_bad=False)


def _closed(now: Now) -> Iterator[Concern]:
    """Pauses with jobs behind them."""
    ready: Counter[tuple[str, str]] = Counter()
    for depth in now.present.depths:
        ready["queue", depth.queue] += depth.ready
        ready["job type", depth.job_type] += depth.ready
    for what in ("queue", "job type"):
        paused = {
            one.name: ready[what, one.name]
            for one in now.present.closed
            if one.what == what
        }
        behind = [(name, jobs) for name, jobs in paused.items() if jobs]
        for (name, jobs), others in _worst(behind, lambda one: one[1]):
            is_queue = what == "queue"
            text = _paused_queue(jobs) if is_queue else _paused_type(jobs)
            text %= {"name": name, "jobs": depth_text(jobs)}
            place = ("queue" if is_queue else "jobtype", name)
            code = "queue_paused" if is_queue else "job_type_paused"
            yield Concern(code, text, *place, is_bad=False, weight=jobs, others=others)


def _paused_queue(ready: int) -> str:
    return ngettext(
        "Queue %(name)s is paused; %(jobs)s ready job waits.",
        "Queue %(name)s is paused; %(jobs)s ready jobs wait.",
        ready,
    )


def _paused_type(ready: int) -> str:
    return ngettext(
        "Job type %(name)s is paused; %(jobs)s ready job waits.",
        "Job type %(name)s is paused; %(jobs)s ready jobs wait.",
        ready,
    )


def _lagging(now: Now) -> Iterator[Concern]:
    """Workers are there, and yet nobody tidies up."""
    living = any(is_alive(worker) for worker in now.present.workers)
    if now.unfolded is not None and living:
        seconds = (now.present.time - now.unfolded).total_seconds()
        text = _(
            "Roll-ups have not been folded for %(time)s: the pruner, a part of "
            "runworkers, does not keep up. Its log says why."
        ) % {"time": span(seconds)}
        yield Concern("rollups_lag", text, is_bad=False)
