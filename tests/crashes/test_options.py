"""Every two options of a worker together, and with them every rare path of a job.

The rows are made by machine: each pair of values of two options is in one of them. In
each row there are jobs of all kinds for real workers.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations, product
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import ArchivedJob, BulkOperation, QueuedJob
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from tests.crashes.seen import QUARANTINE, ends, starts
from tests.pairwise import pairwise
from tests.sample import paths
from tests.sample.jobs import notes
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

OPTIONS: Mapping[str, Sequence[str]] = {
    "slots": ("both", "threads", "async"),
    "queues": ("all", "default,other"),
    "ends": ("by drain", "by signal"),
    "listen": ("true", "false"),
    "database": ("default", "jobs"),
    "processes": ("1", "2"),
    "prefetch": ("0.05", "0"),
    "max-jobs": ("none", "1"),
}
SLOTS = {
    "both": ("--threads", "3", "--async-slots", "3"),
    "threads": ("--threads", "3", "--async-slots", "0"),
    "async": ("--threads", "0", "--async-slots", "3"),
}
CONSTANTS = {
    **BRISK,
    **QUARANTINE,
    "workers.claiming.policies.POLL_EVERY": 0.2,
}
DATA = "jsonb_build_object('journal', %s::text, 'word', %s::text)"
PLAIN_SQL = f"""
INSERT INTO jobqueue_queuedjob (id, job_type, data, quarantined, expires_at)
VALUES (jobqueue_uuidv7(), %s, {DATA}, %s, %s) RETURNING id
"""
FAILED_BEFORE = f"""
INSERT INTO jobqueue_archivedjob (id, job_type, data, status, finished_at)
VALUES (jobqueue_uuidv7(), %s, {DATA}, 'failed', now())
"""

ROWS = pairwise(OPTIONS)


def test_every_two_values_of_two_options_are_in_a_row() -> None:
    for one, two in combinations(OPTIONS, 2):
        tried = {(row[one], row[two]) for row in ROWS}
        assert tried == set(product(OPTIONS[one], OPTIONS[two]))


@dataclass
class Trial:
    """The jobs of one row, and what is to become of them."""

    row: Mapping[str, str]
    run: Callable[..., RunWorkers]
    journal: str
    worker: RunWorkers | None = None
    expected: dict[UUID, tuple[str, set[str]]] = field(default_factory=dict)

    @property
    def kinds(self) -> list[str]:
        """Prefixes of the handlers that can be run: "" is sync, "a" is async."""
        return {"both": ["", "a"], "threads": [""], "async": ["a"]}[self.row["slots"]]

    @property
    def others(self) -> list[str]:
        """Prefixes of those that cannot."""
        return [kind for kind in ("", "a") if kind not in self.kinds]

    @property
    def drains(self) -> bool:
        return self.row["ends"] == "by drain"

    def start(self) -> RunWorkers:
        """Have workers with these options, which may be there already."""
        if self.worker is None or self.worker.process.poll() is not None:
            row, flags = self.row, ["--drain"] if self.drains else []
            if row["queues"] != "all":
                flags += ["--queues", row["queues"]]
            for name in ("listen", "database", "processes", "prefetch", "max-jobs"):
                flags += [f"--{name}", row[name]]
            flags += ["--grace", "0.3", "--cancel-grace", "0.3", *SLOTS[row["slots"]]]
            env = {"SAMPLE_JOBS_DATABASE": "1"}
            self.worker = self.run(*flags, constants=CONSTANTS, **env)
        return self.worker

    def add(
        self, name: str, word: str, *ends: str, how: str = "", **using: Any
    ) -> UUID:
        """Enqueue a job that is to end in one of these ways."""
        handler = getattr(paths, name).using(**using)
        id: UUID = handler.enqueue(self.journal, word, how).id
        self.expected[id] = word, set(ends)
        return id

    def insert(self, kind: str, word: str, *ends: str, **columns: Any) -> None:
        """A job for which an enqueue has no option."""
        quarantined, expires_at = columns.values()
        values = [f"sample.{kind}act", self.journal, word, quarantined, expires_at]
        with connection.cursor() as cursor:
            cursor.execute(PLAIN_SQL, values)
            self.expected[cursor.fetchone()[0]] = word, set(ends)

    def missing(self) -> dict[str, str | None]:
        """By their words, the statuses of jobs that are not as they are to be."""
        found: dict[UUID, str] = {}
        for table in (QueuedJob, ArchivedJob):
            found.update(table.objects.values_list("id", "status"))
        return {
            word: found.get(id)
            for id, (word, ends) in self.expected.items()
            if found.get(id) not in ends
        }

    def settle(self) -> None:
        worker = self.start()
        if self.drains:
            assert worker.wait() == 0, worker.output
        eventually(lambda: not self.missing(), within=30, what=lambda: self.complaint)
        for word, count in starts(self.journal).items():
            assert count == 1 or "die" in word, word

    @property
    def complaint(self) -> str:
        assert self.worker is not None
        return f"{self.missing()} to be as it should:\n{self.worker.output}"

    def started(self, word: str) -> None:
        assert self.worker is not None
        worker = self.worker
        eventually(lambda: starts(self.journal)[word], what=lambda: worker.output)


@pytest.fixture(
    params=some_slow(ROWS, ROWS[:1]),
    ids=lambda row: " ".join(row.values()).replace(",", "+"),
)
def trial(
    request: pytest.FixtureRequest, runworkers: Callable[..., RunWorkers], journal: str
) -> Iterator[Trial]:
    made = Trial(request.param, runworkers, journal)
    for kind in made.kinds:  # before a worker that does not listen reads them
        operations.override(
            getattr(paths, f"{kind}act_overridden").name, max_attempts=1
        )
    if not made.drains:
        made.start().started(int(made.row["processes"]))
    yield made
    assert made.worker is not None
    assert len(made.worker.output.splitlines()) < 500, made.worker.output[:20_000]


def enqueue_all_sorts(trial: Trial) -> list[tuple[str, UUID]]:
    """A job for each path on which no worker dies; returns those to be cancelled."""
    later, past = (timezone.now() + timedelta(hours=n) for n in (1, -1))
    over = ("expired", "queued") if trial.drains else ("expired",)
    to_cancel = []
    for kind in ("", "a"):
        runs = "succeeded" if kind in trial.kinds else "queued"
        trial.add(f"{kind}act", f"{kind}plain", runs)
        trial.add(f"{kind}act", f"{kind}in_time", runs, expires_at=later)
        trial.insert(kind, f"{kind}expired", *over, quarantined=False, expires_at=past)
        trial.insert(kind, f"{kind}alone", runs, quarantined=True, expires_at=None)
        trial.insert(
            kind, f"{kind}late_alone", *over, quarantined=True, expires_at=past
        )
    for kind in trial.kinds:
        for n in range(3):
            trial.add(f"{kind}act_limited", f"{kind}limited{n}", "succeeded")
            trial.add(f"{kind}act_rated", f"{kind}rated{n}", "succeeded")
        trial.add(f"{kind}act_once", f"{kind}once", "succeeded")
        trial.add(f"{kind}act_overridden", f"{kind}fails", "failed", how="fail")
        word = f"{kind}cancelled"
        id = trial.add(f"{kind}act", word, "cancelled", how="stay")
        to_cancel.append((word, id))
    if trial.row["queues"] != "all":
        trial.add(f"{trial.kinds[0]}act", "elsewhere", "queued", queue="elsewhere")
    return to_cancel


def enqueue_for_threads(trial: Trial) -> None:
    trial.add("act_atomic", "atomic", "succeeded")
    words = ("replayed0", "replayed1")
    with connection.cursor() as cursor:
        for word in words:
            cursor.execute(FAILED_BEFORE, [paths.act.name, trial.journal, word])
    terms = (Term("status", "failed"), Term("type", paths.act.name))
    assert bulk.start(bulk.draft("replay", Selection(Table.ARCHIVED, terms)).id)


def never_at_once(trial: Trial, words: set[str]) -> bool:
    lines = [what for what, word in notes(trial.journal) if word in words]
    return lines == ["start", "end"] * len(words)


def test_jobs_of_all_sorts_end_as_they_should(trial: Trial) -> None:
    """Then those of workers that die are rescued, and those that a stop cuts off are
    given back."""
    run_all_sorts(trial)
    trial.expected.clear()
    for kind in trial.kinds:
        trial.add(f"{kind}act_once", f"{kind}once_dies", "failed", how="die")
    trial.settle()
    # One by one: whoever dies beside a job between its end and its outcome has it run
    # and end again.
    for kind in trial.kinds:
        trial.add(f"{kind}act", f"{kind}dies", "succeeded", how="die")
        trial.settle()
    for kind in trial.kinds:
        assert starts(trial.journal)[f"{kind}once_dies"] <= 1
        assert ends(trial.journal)[f"{kind}dies"] == 1

    trial.expected.clear()
    for kind in trial.kinds:
        trial.add(f"{kind}act", f"{kind}stays", "queued", how="stay")
        trial.add(f"{kind}act_once", f"{kind}once_stays", "failed", how="stay")
    worker = trial.start()
    for kind in trial.kinds:
        trial.started(f"{kind}stays")
        trial.started(f"{kind}once_stays")
    worker.signal(signal.SIGTERM)
    worker.wait()
    assert not trial.missing(), trial.complaint
    assert not QueuedJob.objects.filter(crashes__gt=0).exists()
    assert not any("stays" in word for word in ends(trial.journal))


def run_all_sorts(trial: Trial) -> None:
    to_cancel = enqueue_all_sorts(trial)
    if "" in trial.kinds:
        enqueue_for_threads(trial)
    trial.start()
    for word, id in to_cancel:
        trial.started(word)
        operations.cancel([id])
    trial.settle()
    for kind in trial.kinds:
        assert never_at_once(trial, {f"{kind}limited{n}" for n in range(3)})
        made = ArchivedJob.objects.get(job_type=f"sample.{kind}act_overridden")
        assert made.attempts == 1
    if "" in trial.kinds:
        eventually(lambda: BulkOperation.objects.get().state == "done")
        assert BulkOperation.objects.get().changed == 2
        eventually(lambda: ends(trial.journal)["replayed1"])
    assert not {"expired", "aexpired", "late_alone", "elsewhere"} & set(
        starts(trial.journal)
    )
