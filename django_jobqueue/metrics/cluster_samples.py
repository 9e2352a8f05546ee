"""Takes the metrics of the cluster from the database, in a few statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import django_jobqueue
from django_jobqueue.domain import histogram
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.metrics.catalogue import CRASH_PARTS, REMOTE_SLOTS, of_rooms
from django_jobqueue.metrics.metric import Distribution, Sample
from django_jobqueue.store import totals
from django_jobqueue.store.connection import Database
from django_jobqueue.store.reading import (
    database_state,
    failure_stats,
    old_transactions,
    server_facts,
    stats,
)
from django_jobqueue.store.reading.claimers import claimers, is_alive, is_claiming
from django_jobqueue.store.reading.failure_stats import Crashes
from django_jobqueue.store.reading.stats import CAP, Depth, WorkerRow
from django_jobqueue.store.reading.wanted_slots import wanted_slots
from django_jobqueue.store.totals import (
    ATTEMPT_BOUNDS,
    ATTEMPT_OUTCOMES,
    STATUSES,
    Total,
)

Place = tuple[str, str]  # queue and job type
QUEUE: Final = "queue"
JOB_TYPE: Final = "job_type"


def take(db: Database) -> Iterator[Sample]:
    """The samples of this moment. What can be zero is a sample, too: of each queue and
    job type that has jobs, or ever had some."""
    all_totals = totals.read(db)
    workers = stats.workers(db)
    alive = [worker for worker in workers if is_alive(worker)]
    closed = _closed(db)
    depths = {_place(total): Depth(*_place(total)) for total in all_totals}
    depths |= {_place(depth): depth for depth in stats.depths(db)}
    yield from _jobs(depths.values())
    yield from _oldest(depths.values(), closed)
    yield from _unserved(db, depths.values(), alive)
    yield from _totals(all_totals)
    for queue, slots in wanted_slots(
        db, {depth.queue for depth in depths.values()}
    ).items():
        yield Sample("jobqueue_wanted_slots", slots, (queue,))
    yield from _workers(alive)
    for room in of_rooms():
        yield from room.samples(db)
    for what, name in sorted(closed):
        yield Sample("jobqueue_paused", 1, (what, name))
    for state, count in failure_stats.groups(db).items():
        yield Sample("jobqueue_failure_groups", count, (state,))
    yield from _crashes(db, {total.job_type for total in all_totals})
    yield from _database(db)


def _place(one: Total | Depth) -> Place:
    return one.queue, one.job_type


def _closed(db: Database) -> set[tuple[str, str]]:
    """Paused queues and job types, and types whose concurrency is 0."""
    names = {"queue": QUEUE, "job type": JOB_TYPE}
    paused = {(names[pause.what], pause.name) for pause in stats.paused(db)}
    return paused | {(JOB_TYPE, name) for name in stats.without_slots(db)}


def _jobs(depths: Iterable[Depth]) -> Iterator[Sample]:
    for depth in depths:
        counts = {
            "ready": min(depth.ready, CAP),
            "later": min(depth.later, CAP) - min(depth.retrying, CAP),
            "retrying": min(depth.retrying, CAP),
            "running": depth.running,
        }
        for state, count in counts.items():
            yield Sample("jobqueue_jobs", count, (depth.queue, depth.job_type, state))


def _oldest(depths: Iterable[Depth], closed: set[tuple[str, str]]) -> Iterator[Sample]:
    for depth in depths:
        is_closed = {(QUEUE, depth.queue), (JOB_TYPE, depth.job_type)} & closed
        seconds = 0.0 if is_closed else depth.oldest or 0.0
        labels = (depth.queue, depth.job_type)
        yield Sample("jobqueue_oldest_ready_seconds", seconds, labels)


def _unserved(
    db: Database, depths: Iterable[Depth], alive: Sequence[WorkerRow]
) -> Iterator[Sample]:
    known = stats.known_job_types(db, [worker.id for worker in alive])
    claiming = claimers(alive, known)
    for depth in depths:
        place = (depth.queue, depth.job_type)
        is_served = any(claimer.claims(*place) for claimer in claiming)
        waiting = 0 if is_served else min(depth.ready, CAP) + min(depth.later, CAP)
        yield Sample("jobqueue_unserved_jobs", waiting, place)


def _totals(all_totals: Iterable[Total]) -> Iterator[Sample]:
    by_type: dict[str, Total] = {}
    for total in all_totals:
        place = _place(total)
        for outcome in ATTEMPT_OUTCOMES:
            number = total.attempts[outcome]
            yield Sample("jobqueue_attempts_total", number, (*place, outcome))
        for status in STATUSES:
            number = total.jobs[status]
            yield Sample("jobqueue_finished_jobs_total", number, (*place, status))
        held = by_type.get(total.job_type)
        by_type[total.job_type] = totals.added(held, total) if held else total
    for name, total in by_type.items():
        for metric, counts, buckets, size in (
            (
                "jobqueue_attempt_duration_seconds",
                total.run_histogram,
                histogram.BUCKETS,
                total.run_ms / 1_000,
            ),
            (
                "jobqueue_attempt_wait_seconds",
                total.wait_histogram,
                histogram.BUCKETS,
                total.wait_ms / 1_000,
            ),
            (
                "jobqueue_job_attempts",
                total.attempts_histogram,
                len(ATTEMPT_BOUNDS) + 1,
                total.attempts_sum,
            ),
        ):
            value = Distribution(list(counts) or [0] * buckets, size)
            yield Sample(metric, value, (name,))


def _crashes(db: Database, job_types: Iterable[str]) -> Iterator[Sample]:
    none = dict.fromkeys(job_types, Crashes())
    for job_type, crashes in {**none, **failure_stats.crashes(db)}.items():
        counts = (crashes.by_culprits, crashes.unexplained, crashes.beside)
        for part, count in zip(CRASH_PARTS, counts, strict=True):
            yield Sample("jobqueue_crashes", count, (job_type, part))


def _workers(alive: Sequence[WorkerRow]) -> Iterator[Sample]:
    states = Counter(worker.state for worker in alive)
    for state in (WorkerState.RUNNING, WorkerState.DRAINING):
        yield Sample("jobqueue_workers", states[state], (state.value,))
    claiming = [worker for worker in alive if is_claiming(worker)]
    threads = sum(worker.threads for worker in claiming)
    yield Sample("jobqueue_slots", threads, ("thread",))
    for kind, is_remote in (("async", False), (REMOTE_SLOTS, True)):
        own = (one.async_slots for one in claiming if one.is_remote is is_remote)
        yield Sample("jobqueue_slots", sum(own), (kind,))
    yield Sample("jobqueue_busy_slots", sum(worker.running for worker in alive))


def _database(db: Database) -> Iterator[Sample]:
    for table in server_facts.table_facts(db):
        yield Sample("jobqueue_table_bytes", table.size, (table.name,))
        yield Sample("jobqueue_dead_rows", table.dead_rows, (table.name,))
    server = database_state.server(db)
    oldest = old_transactions.oldest(db)
    age = 0.0 if oldest is None else oldest.age
    yield Sample("jobqueue_oldest_transaction_seconds", age)
    yield Sample("jobqueue_xid_age", server.xid_age)
    versions = (django_jobqueue.__version__, server.version)
    yield Sample("jobqueue_build_info", 1, versions)
