"""A storm: hosts run jobs of all kinds while processes, connections and whole hosts are
killed and stopped, tables are locked, and operators do what they may. At the end every
promise is held against what the database and the handlers wrote down.

For longer, with more seeds: ``JOBQUEUE_STORM_SECONDS=600 JOBQUEUE_STORM_SEEDS=10 pytest
-m slow tests/crashes/test_storm.py``.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from django_jobqueue import enqueue_many, operations
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.crashes.claim_log import claim_log as claim_log
from tests.crashes.claim_log import events, most_at_once
from tests.crashes.seen import children
from tests.crashes.test_remote_workers import TYPE as REMOTE
from tests.crashes.test_remote_workers import Programs, needs_node
from tests.crashes.test_remote_workers import programs as programs
from tests.crashes.test_remote_workers import site as site
from tests.sample import storm
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("claim_log", "effects")]

SECONDS = float(os.environ.get("JOBQUEUE_STORM_SECONDS", 60))
SEEDS = int(os.environ.get("JOBQUEUE_STORM_SEEDS", 1))
HOST_FLAGS = ("--threads", "3", "--async-slots", "4", "--lease", "4")
PLENTY = 400  # waiting jobs, above which no more are enqueued
KEYS = 20
HANDLERS = [
    made
    for made in vars(storm).values()
    if isinstance(made, Handler) and made is not storm.follow
]
WITH_KEY = (storm.keyed, storm.keyed_rated, storm.ordered)
NAMES = [handler.name for handler in HANDLERS]
FAULTS = """
kill_worker stop_worker kill_maintenance kill_host stop_host cut_connections
lock_a_table cancel_some replay_some run_some_now put_some_off pause_or_resume override
hold_a_key
"""


@pytest.fixture
def effects(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE storm_effect (job uuid NOT NULL)")
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE storm_effect")


class Storm:
    """What happens to some hosts, chosen by a seed."""

    def __init__(
        self, run: Callable[..., RunWorkers], journal: str, seed: int, processes: int
    ) -> None:
        self.random = random.Random(seed)
        self.journal = journal
        self.enqueued: set[UUID] = set()
        self.done: Counter[str] = Counter()  # by fault
        self._run = run
        self._flags = ("--processes", str(processes), *HOST_FLAGS)
        self._stopped: list[tuple[float, int]] = []  # until when, process
        self._faults = FAULTS.split()
        self.hosts = [self._host(), self._host()]

    def _host(self) -> RunWorkers:
        name = f"storm-{self.random.randrange(1_000_000)}"
        return self._run(*self._flags, SAMPLE_HOST=name)

    def with_programs(self, programs: Programs, count: int) -> None:
        """So many remote workers take part, and are killed and stopped like others."""
        self._programs = programs
        self._nodes = [programs.node() for _ in range(count)]
        self._faults += ["kill_program", "stop_program", *["enqueue_remote"] * 8]

    def kill_program(self) -> None:
        victim = self._nodes.pop(self.random.randrange(len(self._nodes)))
        victim.send_signal(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        self._nodes.append(self._programs.node())

    def stop_program(self) -> None:
        pid = self.random.choice(self._nodes).pid
        os.kill(pid, signal.SIGSTOP)
        seconds = self.random.choice((0.1, 1.0, 20.0))
        self._stopped.append((time.monotonic() + seconds, pid))

    def enqueue_remote(self) -> None:
        rows = [{"image": 1, "ms": self.random.choice((0, 20, 1000))}] * 10
        self.enqueued.update(enqueue_many(REMOTE, rows))

    def blow(self, seconds: float) -> None:
        """Enqueue and do harm for so long, then let everything end."""
        for host in self.hosts:
            host.started()
        over = time.monotonic() + seconds
        while time.monotonic() < over:
            self._enqueue()
            self._continue()
            if self.random.random() < 0.5:
                fault = self.random.choice(self._faults)
                with contextlib.suppress(IndexError, ProcessLookupError):
                    getattr(self, fault)()
                    self.done[fault] += 1
            time.sleep(self.random.uniform(0.02, 0.2))
        self._continue(all_of_them=True)
        operations.resume(NAMES)
        operations.override(storm.limited, concurrency=None)
        operations.override(storm.rated, rate=None)
        for limit in WITH_KEY:
            operations.override_limit(limit, None)
        eventually(self._is_over, within=300, what="all to end")

    def _is_over(self) -> bool:
        """Whether no job is left; those that wait for a retry are run now."""
        operations.run_now(self._some(QueuedJob.objects.filter(status="queued"), 100))
        return not QueuedJob.objects.exists()

    def _enqueue(self) -> None:
        if QueuedJob.objects.count() > PLENTY:
            return
        handler = self.random.choice(HANDLERS)
        rows = [self._data(handler) for _ in range(self.random.randrange(1, 12))]
        if self.random.random() < 0.1:  # nobody may ever see these
            with contextlib.suppress(ZeroDivisionError), transaction.atomic():
                handler.enqueue_many(rows)
                raise ZeroDivisionError
        if len(rows) == 1:
            self.enqueued.add(handler.enqueue(**rows[0]).id)
        else:
            self.enqueued.update(handler.enqueue_many(rows))

    def _data(self, handler: Handler[..., Any]) -> dict[str, Any]:
        seconds = self.random.choice((0.0, 0.0, 0.02, 0.2, 1.0))
        data: dict[str, Any] = {"journal": self.journal, "seconds": seconds}
        if handler in WITH_KEY:
            data["key"] = self.random.randrange(KEYS)
        return data

    def _continue(self, *, all_of_them: bool = False) -> None:
        now = time.monotonic()
        for until, pid in list(self._stopped):
            if all_of_them or until < now:
                self._stopped.remove((until, pid))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _some(self, jobs: QuerySet[Any], count: int) -> list[UUID]:
        """The ids of some of the first hundred."""
        ids = list(jobs.values_list("id", flat=True)[:100])
        return self.random.sample(ids, min(count, len(ids)))

    def _worker(self) -> int:
        return self.random.choice(self.random.choice(self.hosts).workers())

    def kill_worker(self) -> None:
        os.kill(self._worker(), signal.SIGKILL)

    def stop_worker(self) -> None:
        """For a moment, or for so long that its supervisor gives it up."""
        pid = self._worker()
        until = time.monotonic() + self.random.choice((0.1, 1.0, 3.0, 30.0))
        os.kill(pid, signal.SIGSTOP)
        self._stopped.append((until, pid))

    def kill_maintenance(self) -> None:
        host = self.random.choice(self.hosts)
        others = set(children(host.process.pid)) - set(host.workers())
        os.kill(self.random.choice(sorted(others)), signal.SIGKILL)

    def kill_host(self) -> None:
        """Its jobs come back after its lease."""
        if self.random.random() < 0.2:
            self.hosts.pop(self.random.randrange(len(self.hosts))).close()
            self.hosts.append(self._host())

    def stop_host(self) -> None:
        """In good order: nothing is interrupted."""
        if self.random.random() < 0.2:
            self.hosts.pop(self.random.randrange(len(self.hosts))).signal(
                signal.SIGTERM
            )
            self.hosts.append(self._host())

    def cut_connections(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "datname = current_database() AND pid <> pg_backend_pid() "
                "AND random() < %s",
                [self.random.choice((0.1, 0.3, 1.0))],
            )

    def lock_a_table(self) -> None:
        table = self.random.choice(
            ("jobqueue_queuedjob", "jobqueue_archivedjob", "jobqueue_worker")
        )
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
            time.sleep(self.random.uniform(0.0, 0.5))

    def cancel_some(self) -> None:
        operations.cancel(self._some(QueuedJob.objects.all(), 2))

    def replay_some(self) -> None:
        chosen = self._some(ArchivedJob.objects.order_by("-finished_at"), 3)
        self.enqueued.update(operations.replay_many(chosen).values())

    def run_some_now(self) -> None:
        operations.run_now(self._some(QueuedJob.objects.filter(status="queued"), 2))

    def put_some_off(self) -> None:
        chosen = self._some(QueuedJob.objects.filter(status="queued"), 2)
        operations.reschedule(chosen, run_after=timezone.now() + timedelta(seconds=2))

    def pause_or_resume(self) -> None:
        name = self.random.choice(NAMES)
        self.random.choice((operations.pause, operations.resume))([name])

    def override(self) -> None:
        """Only to less than the code says, or back, so that its bounds hold."""
        choose = self.random.choice
        operations.override(
            storm.limited, concurrency=choose((None, 0, 1, storm.CONCURRENCY))
        )
        operations.override(storm.rated, rate=choose((None, "10/s", "20/s burst 2")))
        operations.override_limit(storm.keyed, choose((None, 0, 1, storm.OF_KEY)))

    def hold_a_key(self) -> None:
        limit, key = self.random.choice(WITH_KEY), str(self.random.randrange(KEYS))
        operations.override_limit(limit, 0, key=key)
        time.sleep(0.1)
        operations.override_limit(limit, None, key=key)


def told(journal: str) -> dict[str, Counter[tuple[UUID, int]]]:
    """What the handlers wrote down: how often each claim of a job did what."""
    found: dict[str, Counter[tuple[UUID, int]]] = defaultdict(Counter)
    path = Path(journal)
    for line in path.read_text().splitlines() if path.exists() else []:
        _, _, word, job, fence = line.split()
        found[word][UUID(job), int(fence)] += 1
    return found


def most_in_a_window(moments: list[datetime], window: timedelta) -> int:
    """The greatest number of them in any half-open window of this length."""
    first, most = 0, 0
    for last, moment in enumerate(moments):
        while moments[first] <= moment - window:
            first += 1
        most = max(most, last - first + 1)
    return most


def check_jobs(blown: Storm) -> dict[UUID, ArchivedJob]:
    """Each job is over, once, and so is one follower of each that has them."""
    archived = {job.id: job for job in ArchivedJob.objects.all()}
    followers = [j for j in archived.values() if j.job_type_id == storm.follow.name]
    replayed = {j.id for j in followers if j.id in blown.enqueued}
    followed = Counter(job.follows for job in followers if job.id not in replayed)
    plain = {id for id, j in archived.items() if j.job_type_id == storm.plain.name}
    assert followed == dict.fromkeys(plain, 1)
    others = {id for id, j in archived.items() if j.job_type_id != storm.follow.name}
    unknown = [archived[id] for id in others - blown.enqueued]
    assert not unknown, [(j.job_type_id, j.replay_of, j.follows) for j in unknown]
    assert not blown.enqueued - archived.keys()
    return archived


def check_claims(journal: str, archived: dict[UUID, ArchivedJob]) -> None:
    """Each claim started a handler at most once, in the order of the fences, and what
    succeeded was ended by its last claim."""
    happened, by_handlers = events(), told(journal)
    fences: dict[UUID, list[int]] = defaultdict(list)
    for event in happened:
        if event.kind == "start":
            fences[event.job].append(event.fence)
    for id, found in fences.items():
        assert found == sorted(set(found)), f"fences of {id}"
    for word, counted in by_handlers.items():
        assert set(counted.values()) == {1}, word
        assert all(fence in fences[job] for job, fence in counted), word
    for job in archived.values():
        if job.status == "succeeded" and job.job_type_id in NAMES:
            assert (job.id, fences[job.id][-1]) in by_handlers["end"], job
        if job.job_type_id == storm.retried.name and job.status == "succeeded":
            assert job.attempts == 3
        if job.job_type_id == storm.failing.name:
            assert job.status in ("failed", "cancelled")
    starts = Counter(job for job, _ in by_handlers["start"])
    once = {id for id, j in archived.items() if j.job_type_id == storm.once.name}
    assert all(starts[id] <= 1 for id in once)


def check_effects(archived: dict[UUID, ArchivedJob]) -> None:
    """Atomic jobs had their effect exactly once if they succeeded, and else none."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT job, count(*) FROM storm_effect GROUP BY job")
        effects = dict(cursor.fetchall())
    atomic = [j for j in archived.values() if j.job_type_id == storm.atomic.name]
    succeeded = [job.id for job in atomic if job.status == "succeeded"]
    assert effects == dict.fromkeys(succeeded, 1)


def check_limits() -> None:
    happened = events()
    for name, limit in {
        storm.limited.name: storm.CONCURRENCY,
        storm.keyed.name: storm.OF_KEY,
        storm.keyed_rated.name: 1,
        storm.ordered.name: 1,
    }.items():
        assert max(most_at_once(happened, name).values(), default=0) <= limit, name
    starts: dict[str, list[datetime]] = defaultdict(list)
    for event in happened:
        if event.started_at is not None:
            starts[event.limit_key or event.job_type].append(event.started_at)
    for name, moments in starts.items():
        if name == storm.rated.name:
            rate = storm.RATE
        elif name.startswith(f"{storm.keyed_rated.name} "):
            rate = storm.RATE_OF_KEY
        else:
            continue
        assert most_in_a_window(sorted(moments), rate.window) <= rate.limit, name


def check_order() -> None:
    """Where the order is strict, no job started after another one of its key had."""
    last: dict[str | None, UUID] = {}
    overtaken: set[UUID] = set()
    for event in events():
        if event.kind == "start" and event.job_type == storm.ordered.name:
            before = last.setdefault(event.limit_key, event.job)
            if before != event.job:
                overtaken.add(before)
                last[event.limit_key] = event.job
            assert event.job not in overtaken, event


def run_storm(
    run: Callable[..., RunWorkers],
    journal: str,
    *,
    seed: int,
    seconds: float,
    processes: int,
    programs: Programs | None = None,
) -> None:
    blown = Storm(run, journal, seed, processes)
    if programs is not None:
        blown.with_programs(programs, 2 * processes)
    blown.blow(seconds)
    archived = check_jobs(blown)
    check_claims(journal, archived)
    check_effects(archived)
    check_limits()
    check_order()
    statuses = Counter((job.job_type_id, job.status) for job in archived.values())
    print(f"seed {seed}: {blown.done} {sorted(statuses.items())}")


@pytest.mark.slow("a storm of what tests of kills, limits and options ask one by one")
def test_a_storm(runworkers: Callable[..., RunWorkers], journal: str) -> None:
    seed = random.randrange(1_000_000)
    run_storm(runworkers, journal, seed=seed, seconds=4, processes=2)


@pytest.mark.slow("minutes of storm")
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_a_long_storm_over_eight_processes(
    runworkers: Callable[..., RunWorkers], journal: str, seed: int
) -> None:
    run_storm(runworkers, journal, seed=seed, seconds=SECONDS, processes=4)


@needs_node
@pytest.mark.slow("minutes of storm")
@pytest.mark.timeout(SECONDS + 600)
def test_a_storm_in_which_half_of_the_workers_are_remote(
    programs: Programs, runworkers: Callable[..., RunWorkers], journal: str
) -> None:
    run_storm(
        runworkers, journal, seed=1, seconds=SECONDS, processes=2, programs=programs
    )
    remote = ArchivedJob.objects.filter(job_type=REMOTE, status="succeeded")
    assert remote.exists()
    assert all(job.result == {"image": 1, "width": 640} for job in remote)
