"""What does it cost to enqueue?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Final

from benchmarks.enqueuer import Enqueuer
from benchmarks.figures import percentile
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site
from benchmarks.systems import ALL, ON_POSTGRES, OURS
from benchmarks.systems.base import Load, System

BLOCKS: Final = 40
OF: Final = 25  # calls
WARM_UP: Final = 1_000
COPIES: Final = 3  # of each kind
CLIENTS: Final = 16
CROWDED: Final = 5.0  # seconds of each rate
SETTLED: Final = 3.0  # seconds from the start of a worker until it is idle
APART: Final = 1_000_000  # between the first numbers of two clients
# Who commits waits for a millisecond before it flushes, as on a disk that is slower.
SLOW_COMMITS: Final = {"PGOPTIONS": "-c commit_delay=1000 -c commit_siblings=0"}
IDLE_WORKER: Final = """
INSERT INTO jobqueue_worker (name, host, pid, listening) VALUES ('idle', '', 0, true)
"""
NO_WORKER: Final = "DELETE FROM jobqueue_worker"


def _single(site: Site, system: System) -> Values:
    blocks = site.jobs(BLOCKS * OF) // OF
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        trial.place.settle()
        took = enqueuer.singles(blocks=blocks, of=OF)
    enqueue = statistics.median(took["enqueues"])
    found = {"p50_ms": enqueue / 1e6, "p99_ms": percentile(took["enqueues"], 99) / 1e6}
    if took.get("inserts"):
        insert = statistics.median(took["inserts"])
        found |= {"ratio": enqueue / insert, "insert_p50_ms": insert / 1e6}
    if took.get("planned"):
        found["planned_ratio"] = enqueue / statistics.median(took["planned"])
    return found


def _crowd(site: Site, system: System) -> Values:
    """The rates of many clients at once, each commit of which takes a millisecond."""
    found: dict[str, float] = {}
    with site.trial(system) as trial, ExitStack() as stack:
        clients = [
            stack.enter_context(trial.enqueuer(**SLOW_COMMITS)) for _ in range(CLIENTS)
        ]
        crowd = _Crowd(clients, site.seconds(CROWDED))
        crowd.rate()  # to warm up
        found["bare_per_s"] = crowd.rate(bare=True)
        found["per_s"] = crowd.rate()
        if system is OURS:
            trial.database.connection.execute(IDLE_WORKER)
            found["wanted_per_s"] = crowd.rate()
            trial.database.connection.execute(NO_WORKER)
            for key, load in (("deaf_per_s", Load.DEAF), ("worker_per_s", Load.PICKUP)):
                workers = trial.start(load)
                time.sleep(site.seconds(SETTLED))
                found[key] = crowd.rate()
                workers.kill()
            found["wanted_ratio"] = found["wanted_per_s"] / found["per_s"]
            found["worker_ratio"] = found["worker_per_s"] / found["deaf_per_s"]
    return found


class _Crowd:
    """Clients that enqueue at the same time."""

    def __init__(self, clients: Sequence[Enqueuer], seconds: float) -> None:
        self._clients = clients
        self._seconds = seconds
        self._next = 0

    def rate(self, *, bare: bool = False) -> float:
        """Enqueues, or bare INSERTs, a second by all of them together."""
        firsts = [self._next + i * APART for i in range(len(self._clients))]
        self._next += APART * len(self._clients)
        with ThreadPoolExecutor(len(self._clients)) as pool:
            done: int = sum(
                pool.map(
                    lambda client, at: client.during(at, self._seconds, bare=bare),
                    self._clients,
                    firsts,
                )
            )
        return done / self._seconds


def _copy(site: Site, system: System) -> Values:
    jobs = site.jobs(system.sizes.bulk)
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        enqueuer.many(site.jobs(WARM_UP))
        trial.place.settle()
        enqueues, bare = enqueuer.copies(blocks=COPIES, of=jobs)
    enqueue, copy = statistics.median(enqueues), statistics.median(bare)
    return {
        "ratio": copy / enqueue,
        "jobs_per_s": jobs / enqueue * 1e9,
        "rows_per_s": jobs / copy * 1e9,
    }


def _bulk(site: Site, system: System) -> Values:
    jobs = site.jobs(system.sizes.bulk)
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        enqueuer.many(site.jobs(WARM_UP))
        trial.analyse()
        trial.place.settle()
        seconds = enqueuer.many(jobs, first=WARM_UP)
    return {"jobs_per_s": jobs / seconds, "jobs": jobs}


QUESTION: Final = Question(
    name="enqueue",
    title="Enqueueing",
    asked=(
        f"Single: blocks of {OF} enqueues, each a transaction, take turns with {OF} "
        "bare INSERTs of the same row; the ratio of the medians is what the system "
        f"adds. Then {CLIENTS} clients at once, whose commits wait for a millisecond "
        "(`commit_delay`). Bulk: the fastest documented way, in chunks of 10,000 "
        "(django_jobqueue's `enqueue_many`, pgqueuer, django-ox, graphile-worker, "
        "pg-boss), 5,000 (procrastinate), 1,000 (chancy), transactions of 1,000 "
        "(django-tasks-db) or one by one (celery, dramatiq). Ours takes turns with a "
        "bare COPY of the same rows."
    ),
    cases=(
        Case(
            name="single",
            title="One by one",
            systems=ALL,
            columns=(
                Column(key="ratio", title="× a bare INSERT"),
                Column(key="planned_ratio", title="× an unprepared one"),
                Column(key="p50_ms", title="p50 ms"),
                Column(key="p99_ms", title="p99 ms"),
                Column(key="insert_p50_ms", title="bare INSERT p50 ms"),
            ),
            leads="ratio",
            also=("planned_ratio", "p50_ms"),
            better=Better.LOW,
            measure=_single,
        ),
        Case(
            name="crowd",
            title=f"{CLIENTS} clients, 1 ms per commit",
            systems=ON_POSTGRES,
            columns=(
                Column(key="per_s", title="enqueues/s"),
                Column(key="bare_per_s", title="bare INSERTs/s"),
                Column(key="wanted_per_s", title="a worker says that it is idle"),
                Column(key="wanted_ratio", title="to without"),
                Column(key="worker_per_s", title="a worker runs them"),
                Column(key="deaf_per_s", title="one that only polls"),
                Column(key="worker_ratio", title="to that"),
            ),
            leads="per_s",
            better=Better.HIGH,
            measure=_crowd,
            most_rounds=2,
        ),
        Case(
            name="bulk",
            title="In bulk",
            systems=ALL,
            columns=(
                Column(key="jobs_per_s", title="jobs/s"),
                Column(key="jobs", title="jobs"),
            ),
            leads="jobs_per_s",
            better=Better.HIGH,
            measure=_bulk,
        ),
        Case(
            name="copy",
            title="In bulk, beside a bare COPY",
            systems=(OURS,),
            columns=(
                Column(key="ratio", title="of a bare COPY's rate"),
                Column(key="jobs_per_s", title="jobs/s"),
                Column(key="rows_per_s", title="bare COPY: rows/s"),
            ),
            leads="ratio",
            better=Better.HIGH,
            measure=_copy,
        ),
    ),
    why=(
        "A single enqueue waits for its commit; the systems differ in the statement "
        "before it. Triggers and log rows of pgqueuer and procrastinate also run in "
        "the bare INSERT beside them. A commit that notifies locks the whole cluster, "
        "so clients that notify commit one after the other; ours notify only while a "
        "worker of the queue is idle, and of concurrent clients few notify for all. "
        "psycopg prepares the bare INSERT; Django prepares nothing, hence the second "
        "column. Redis answers before anything is on a disk."
    ),
    aims=(
        Aim(
            text="Single: at most 1.15 × a bare INSERT",
            figure=lambda r: r.median("enqueue/single", OURS.name, "ratio"),
            at_most=1.15,
            reason=(
                "psycopg prepares the bare INSERT, Django does not: planning takes "
                "0.08 of the 0.15 ms of difference; checks, signal and Django's "
                "cursor take the rest. With OPTIONS that let Django prepare it is "
                "1.25 × the bare one."
            ),
        ),
        Aim(
            text="Single: at most 1.15 × a bare INSERT that is not prepared, either",
            figure=lambda r: r.median("enqueue/single", OURS.name, "planned_ratio"),
            at_most=1.15,
        ),
        Aim(
            text=f"{CLIENTS} clients: at least 0.9 × while a worker says it is idle",
            figure=lambda r: r.median("enqueue/crowd", OURS.name, "wanted_ratio"),
            at_least=0.9,
            reason=(
                "Two of the clients notify at a time, and their commits wait for each "
                "other; the others try two advisory locks, 9 µs with the planning. "
                "With a worker that is really there, and reads them, it is more."
            ),
        ),
        Aim(
            text=f"{CLIENTS} clients: at least 0.9 × while a worker is notified",
            figure=lambda r: r.median("enqueue/crowd", OURS.name, "worker_ratio"),
            at_least=0.9,
        ),
        Aim(
            text="Bulk: at least 0.5 × a bare COPY",
            figure=lambda r: r.median("enqueue/copy", OURS.name, "ratio"),
            at_least=0.5,
        ),
    ),
)
