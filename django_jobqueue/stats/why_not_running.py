"""Why queued jobs are not running: the conditions of a claim, checked for all jobs of a
page in a fixed number of queries."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from textwrap import shorten
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext, ngettext

from django_jobqueue.conf import conf
from django_jobqueue.domain.policy import limit_in_force
from django_jobqueue.domain.rates import NO_RATE
from django_jobqueue.domain.states import ALIVE, QueuedStatus, WorkerState
from django_jobqueue.models import JobType, Queue, QueuedJob, Worker
from django_jobqueue.stats.current_state import known_job_types
from django_jobqueue.stats.pauses import is_paused
from django_jobqueue.stats.waiting_for_key import WaitingForKey, running_by
from django_jobqueue.stats.waiting_for_rate import RateWait, WaitingForRate
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading.lane_position import Place, count_before
from django_jobqueue.store.rows import Lane
from django_jobqueue.text import numbers as formatting
from django_jobqueue.text import timezones
from django_jobqueue.text.sanitizing import visible

MOST_BEFORE: Final = 100  # counted no further
LONGEST_WHY: Final = 80  # characters of the reason of a pause
COMMAND: Final = ("jobqueue",)


class Reason(str):
    """A sentence, and what it is about: the "limit" of its job type, which running jobs
    use up, that of its "key", its "job type", or its "queue". The remedy is a command
    without ``manage.py``; it is empty where there is nothing to do but to wait."""

    __slots__ = ("about", "remedy")
    about: str
    remedy: str

    def __new__(cls, text: str, about: str = "", *remedy: object) -> Reason:
        """Remember what it is about, and the words of the remedy, beside the text."""
        reason = super().__new__(cls, text)
        reason.about = about
        reason.remedy = shlex.join(map(str, remedy))
        return reason


Reasons = list[Reason]


def why_not(
    rows: Sequence[Any],
    *,
    types: Mapping[str, JobType],
    queues: Mapping[str, Queue],
    workers: Iterable[Worker],
) -> dict[UUID, Reasons]:
    """The reasons why each of these queued jobs is not running, or is not stopping;
    empty where there is none.

    ``types`` and ``queues`` are all rows by their names; ``workers`` are the living
    ones, and those of the running jobs.
    """
    finder = _Reasons(rows, types, queues, workers)
    reasons = {row.pk: list(finder.of(row)) for row in rows}
    free = [row for row in rows if not reasons[row.pk] and not _runs(row)]
    before = _jobs_before(free)
    for row in free:
        reasons[row.pk] = list(finder.of_turn(row, before.get(row.pk, 0)))
    return reasons


def why_not_one(job: QueuedJob) -> Reasons:
    """The reasons why this queued job is not running; reads what it needs."""
    alias = conf.database
    types = JobType.objects.using(alias).filter(pk=job.job_type_id)
    queues = Queue.objects.using(alias).filter(pk=job.queue)
    workers = Worker.objects.using(alias).filter(
        Q(state__in=ALIVE) | Q(pk=job.worker_id)
    )
    workers = workers.defer("job_types")
    return why_not(
        [job],
        types={row.name: row for row in types},
        queues={row.name: row for row in queues},
        workers=workers,
    )[job.pk]


class _Reasons:
    """The job types, queues and workers around some jobs."""

    def __init__(
        self,
        rows: Sequence[Any],
        types: Mapping[str, JobType],
        queues: Mapping[str, Queue],
        workers: Iterable[Worker],
    ) -> None:
        self.now = timezones.now()
        self.types = types
        self.queues = queues
        self.workers = {worker.pk: worker for worker in workers}
        self.living = [w for w in self.workers.values() if _lives(w, self.now)]
        self.known = known_job_types([worker.pk for worker in self.living])
        self.limits = {
            name: limit
            for name in {row.job_type_id for row in rows} & self.types.keys()
            if (limit := _limit(self.types[name])) is not None
        }
        self.running = running_by("job_type", self.limits)
        self.keys = WaitingForKey(rows, self.types)
        self.rates = WaitingForRate(rows, self.types)

    def of(self, job: Any) -> Iterator[Reason]:
        """The conditions that a claim, or the end of a run, waits for."""
        if _runs(job):
            yield from self._of_run(job)
            return
        if job.expires_at is not None and job.expires_at <= self.now:
            yield Reason(gettext("it has expired and is about to be archived"))
            return
        yield from _of_pause(self.types.get(job.job_type_id), _type_paused, "job type")
        yield from _of_pause(
            self.queues.get(job.queue), _queue_paused, "queue", "--queue"
        )
        yield from self._of_workers(job)
        if job.run_after > self.now:
            seconds = (job.run_after - self.now).total_seconds()
            text = gettext("it is not due for another %(span)s")
            values = {"span": formatting.span(seconds)}
            yield Reason(text % values, "", *COMMAND, "run-now", job.pk)
        else:
            yield from self._of_limit(job)

    def of_turn(self, job: Any, before: int) -> Iterator[Reason]:
        """The reason that remains where nothing blocks the job."""
        yield from _of_line(job, before)
        if job.quarantined:
            yield Reason(
                gettext("it waits for a process of its own, because its workers died")
            )
        elif not any(_has_room(worker) for worker in self._able(job)):
            remedy = (*COMMAND, "hosts", "scale", "--all", "--processes", "N")
            yield Reason(gettext("it waits for a free slot"), "", *remedy)
        elif not before:
            yield Reason(gettext("it is about to be claimed"))

    def _of_run(self, job: Any) -> Iterator[Reason]:
        worker = self.workers.get(job.worker_id)
        if worker is None or not worker.keeps_its_jobs(self.now):
            text = gettext("its worker is gone; it will be rescued")
            yield Reason(text, "", *COMMAND, "release", job.pk)
        elif worker.state == WorkerState.MOVING and worker.lease_until <= self.now:
            text = gettext(
                "the move that holds it has ended: move again, or release it if the "
                "other database is lost"
            )
            yield Reason(text, "", *COMMAND, "release", job.pk)
        elif job.cancel_requested_at is not None:
            text = gettext("it was asked to stop and has not stopped yet")
            stacks = (*COMMAND, "workers", "stacks", worker.name)
            yield Reason(text, "", *(stacks if _lives(worker, self.now) else ()))

    def _of_limit(self, job: Any) -> Iterator[Reason]:
        limit = self.limits.get(job.job_type_id)
        running = self.running.get(job.job_type_id, 0)
        if limit is not None and running >= limit:
            text = gettext("its job type is at its limit: %(running)s of %(limit)s run")
            numbers = {
                "running": formatting.number(running),
                "limit": formatting.number(limit),
            }
            remedy = (*COMMAND, "override", job.job_type_id, "--concurrency", limit + 1)
            yield Reason(text % numbers, "limit", *remedy)
        if (wait := self.rates.of_type(job)) is not None:
            text = gettext(
                "its job type is at its rate, %(rate)s: the next may start at %(time)s"
            )
            override = (*COMMAND, "override", job.job_type_id, "--rate", NO_RATE)
            yield _of_rate(wait, text, "limit", *override)
        if (wait := self.rates.of_key(job)) is not None:
            text = gettext(
                "its key is at its rate, %(rate)s: the next may start at %(time)s"
            )
            yield _of_rate(wait, text, "key", *COMMAND, "limits")
        if (first := self.keys.first_of(job)) is not None:
            text = gettext(
                "the order of its key is strict: job %(job)s is first, due at %(time)s"
            )
            values = {"job": first.pk, "time": timezones.exact(first.run_after)}
            yield Reason(text % values, "key", *COMMAND, "run-now", first.pk)
        of_key, running = self.keys.limit_of(job), self.keys.running_of(job)
        if of_key == 0:
            yield Reason(gettext("its key is held"), "key", *COMMAND, "limits")
        elif of_key is not None and running >= of_key:
            text = gettext("its key is at its limit: %(running)s of %(limit)s run")
            numbers = {
                "running": formatting.number(running),
                "limit": formatting.number(of_key),
            }
            yield Reason(text % numbers, "key", *COMMAND, "limits")

    def _of_workers(self, job: Any) -> Iterator[Reason]:
        if not self.living:
            yield Reason(gettext("no worker is alive"), "", "runworkers")
            return
        serving = [worker for worker in self.living if _serves(worker, job.queue)]
        knowing = [w for w in self.living if job.job_type_id in self.known[w.pk]]
        if not serving:
            start = ("runworkers", "--queues", job.queue)
            yield Reason(gettext("no living worker serves its queue"), "queue", *start)
        if not knowing:
            text = gettext("no running worker handles this type")
            show = (*COMMAND, "types", "show", job.job_type_id)
            yield Reason(text, "job type", *show)
        if serving and knowing:
            able = self._able(job)
            if not able:
                text = gettext("no living worker serves its queue and knows its type")
                yield Reason(text, "", "runworkers", "--queues", job.queue)
            elif all(worker.state == WorkerState.DRAINING for worker in able):
                text = gettext("the workers that could run it take no new jobs")
                names = sorted(worker.name for worker in able)
                yield Reason(text, "", *COMMAND, "workers", "resume", *names)

    def _able(self, job: Any) -> list[Worker]:
        return [
            worker
            for worker in self.living
            if _serves(worker, job.queue) and job.job_type_id in self.known[worker.pk]
        ]


def _of_rate(wait: RateWait, text: str, about: str, *remedy: object) -> Reason:
    values = {"rate": wait.rate.text, "time": timezones.exact(wait.until)}
    return Reason(text % values, about, *remedy)


def _of_line(job: Any, before: int) -> Iterator[Reason]:
    """How many jobs come before it: of its lane, or of its key, since keys take
    turns."""
    at_least = before >= MOST_BEFORE
    if not before:
        return
    count = formatting.number(MOST_BEFORE if at_least else before)
    if job.limit_key is not None:
        text = ngettext(
            "%(count)s of its key ahead of it",
            "%(count)s of its key ahead of it",
            before,
        )
        if at_least:
            text = gettext("at least %(count)s of its key ahead of it")
    else:
        text = ngettext(
            "%(count)s ahead of it in line", "%(count)s ahead of it in line", before
        )
        if at_least:
            text = gettext("at least %(count)s ahead of it in line")
    remedy = (*COMMAND, "reschedule", job.pk, "--priority", min(job.priority + 1, 100))
    yield Reason(text % {"count": count}, "", *remedy)


def _type_paused(who: str, until: str) -> str:
    values = {"who": who, "until": until}
    if who and until:
        return gettext("%(who)s paused its job type until %(until)s") % values
    if who:
        return gettext("%(who)s paused its job type") % values
    if until:
        return gettext("its job type is paused until %(until)s") % values
    return gettext("its job type is paused")


def _queue_paused(who: str, until: str) -> str:
    values = {"who": who, "until": until}
    if who and until:
        return gettext("%(who)s paused its queue until %(until)s") % values
    if who:
        return gettext("%(who)s paused its queue") % values
    if until:
        return gettext("its queue is paused until %(until)s") % values
    return gettext("its queue is paused")


def _of_pause(
    row: JobType | Queue | None,
    words: Callable[[str, str], str],
    about: str,
    *flags: str,
) -> Iterator[Reason]:
    if row is not None and is_paused(row):
        until = timezones.exact(row.resume_at) if row.resume_at else ""
        text = words(visible(row.paused_by or ""), until)
        why = shorten(visible(row.paused_reason or ""), LONGEST_WHY, placeholder="…")
        resume = (*COMMAND, "resume", row.name, *flags)
        yield Reason(f"{text}: {why}" if why else text, about, *resume)


def _limit(job_type: JobType) -> int | None:
    return limit_in_force(job_type.concurrency, job_type.concurrency_override)


def _runs(job: Any) -> bool:
    return bool(job.status == QueuedStatus.RUNNING)


def _lives(worker: Worker, now: datetime) -> bool:
    return worker.state in ALIVE and worker.lease_until > now


def _serves(worker: Worker, queue: str) -> bool:
    return worker.queues is None or queue in worker.queues


def _has_room(worker: Worker) -> bool:
    return worker.running < worker.threads + worker.async_slots


def _jobs_before(rows: Sequence[Any]) -> dict[UUID, int]:
    """How many jobs of its lane come before each."""
    places = [
        Place(
            row.pk,
            Lane(row.queue, row.priority, row.job_type_id),
            row.run_after,
            row.limit_key,
        )
        for row in rows
        if not row.quarantined
    ]
    return count_before(DjangoDatabase(), places, MOST_BEFORE) if places else {}
