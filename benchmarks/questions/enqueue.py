"""What does it cost to enqueue?"""

from __future__ import annotations

import statistics
from typing import Final

from benchmarks.figures import percentile
from benchmarks.questions.base import Aim, Better, Case, Column, Question, Values
from benchmarks.site import Site
from benchmarks.systems import ALL, OURS
from benchmarks.systems.base import System

BLOCKS: Final = 40
OF: Final = 25  # calls
WARM_UP: Final = 1_000


def _single(site: Site, system: System) -> Values:
    blocks = site.jobs(BLOCKS * OF) // OF
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        site.server.checkpoint()
        enqueues, inserts = enqueuer.singles(blocks=blocks, of=OF)
    enqueue, insert = statistics.median(enqueues), statistics.median(inserts)
    return {
        "ratio": enqueue / insert,
        "p50_ms": enqueue / 1e6,
        "p99_ms": percentile(enqueues, 99) / 1e6,
        "insert_p50_ms": insert / 1e6,
    }


def _bulk(site: Site, system: System) -> Values:
    jobs = site.jobs(system.sizes.bulk)
    with site.trial(system) as trial, trial.enqueuer() as enqueuer:
        enqueuer.many(site.jobs(WARM_UP))
        trial.analyse()
        site.server.checkpoint()
        seconds = enqueuer.many(jobs, first=WARM_UP)
    return {"jobs_per_s": jobs / seconds, "jobs": jobs}


QUESTION: Final = Question(
    name="enqueue",
    title="Enqueueing",
    asked=(
        "One client. Single: each enqueue is a transaction of its own; blocks of "
        f"{OF} enqueues and of {OF} bare psycopg INSERTs of the same row into the same "
        "table take turns, and the ratio of their medians is what the system adds. "
        "Bulk: the fastest way that each system documents; in chunks of 10,000 for "
        "django_jobqueue (`enqueue_many`, which is COPY) and pgqueuer (one INSERT from "
        "arrays), of 5,000 for procrastinate (one function call), in transactions of "
        "1,000 enqueues for django-tasks-db."
    ),
    cases=(
        Case(
            name="single",
            title="One by one",
            systems=ALL,
            columns=(
                Column(key="ratio", title="to a bare INSERT"),
                Column(key="p50_ms", title="p50 ms"),
                Column(key="p99_ms", title="p99 ms"),
                Column(key="insert_p50_ms", title="bare INSERT p50 ms"),
            ),
            leads="ratio",
            better=Better.LOW,
            measure=_single,
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
    ),
    why=(
        "A single enqueue waits for its commit; what differs is the statement before "
        "it. Ours and that of django-tasks-db write one row; pgqueuer writes a row of "
        "its log besides and notifies by a trigger; procrastinate calls a function "
        "whose triggers write events and notify. The bare INSERT into the tables of "
        "pgqueuer and procrastinate fires the same triggers. In bulk procrastinate's "
        "triggers fire for each row, and django-tasks-db has no bulk call."
    ),
    aims=(
        Aim(
            text="Single: at most 1.3 × a bare INSERT",
            figure=lambda r: r.median("enqueue/single", OURS.name, "ratio"),
            at_most=1.3,
        ),
        Aim(
            text="Bulk: at least 30,000 jobs/s",
            figure=lambda r: r.median("enqueue/bulk", OURS.name, "jobs_per_s"),
            at_least=30_000,
        ),
    ),
)
