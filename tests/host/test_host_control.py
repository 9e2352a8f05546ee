"""Host control decides the same for workers in processes and in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Literal

import pytest

from django_jobqueue import operations
from django_jobqueue.embedded import EmbeddedWorker
from django_jobqueue.embedded.threaded_worker import HostedThreads
from django_jobqueue.host.child import Child
from django_jobqueue.host.control import HostControl, HostedWorker
from django_jobqueue.models import Worker
from django_jobqueue.processes.process_table import DESIRES, LIMITS, ProcessTable
from django_jobqueue.processes.shutdown import Step
from django_jobqueue.processes.worker_config import WorkerConfig
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)

ALL = [f"stop: {step.value}" for step in Step]
Kind = Literal["process", "threads"]


@pytest.fixture(params=["process", "threads"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


class Host:
    """Host control over one worker that holds a job, and the steps that the worker was
    asked to take."""

    def __init__(self, kind: Kind, config: WorkerConfig) -> None:
        self.table = ProcessTable(2)
        self.table.maintenance_is_ready = True
        self.control = HostControl(config, self.table, wanted=1, grace=0)
        self.steps: list[str] = []
        self.worker = self._process() if kind == "process" else self._threads(config)
        self.table.write(0, pid=os.getpid(), worker=1, held=1)

    def _process(self) -> HostedWorker:
        reader, self._control = os.pipe()
        os.close(reader)
        return self._watched(Child)(os.getpid(), self._control, 0, 0.0)

    def _threads(self, config: WorkerConfig) -> HostedWorker:
        self._control = -1
        return self._watched(HostedThreads)(config, self.table, 0)

    def _watched(self, cls: type[HostedWorker]) -> Callable[..., HostedWorker]:
        """The class, with steps that are noted and have no effect on this process."""

        def note(step: str) -> Callable[[object], None]:
            return lambda worker: self.steps.append(step)

        noting = {step: note(step) for step in ("drain", "resume", "kill")}
        take = {"take": lambda worker, step: self.steps.append(f"stop: {step.value}")}
        return type(cls.__name__, (cls,), noting | take)

    def successor(self) -> HostedWorker:
        self.table.write(1, pid=os.getpid())
        return self._watched(Child)(os.getpid(), self._control, 1, 0.0)

    def ask(self, desire: str) -> None:
        """Let an operator ask for this, and control look after the worker."""
        self.table.write(0, desired=DESIRES.index(desire))
        self.fence_and_obey()

    def fence_and_obey(self) -> None:
        self.control.fence_and_obey([self.worker])

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._control)


@pytest.fixture
def host_of() -> Iterator[Callable[..., Host]]:
    """Make a host: ``host_of("process", drain=True)``."""
    made: list[Host] = []

    def make(kind: Kind, **options: bool) -> Host:
        config = WorkerConfig(threads=1, listen=False, **options)
        made.append(Host(kind, config))
        return made[-1]

    yield make
    for host in made:
        host.close()


@pytest.fixture
def host(host_of: Callable[..., Host], kind: Kind) -> Host:
    return host_of(kind)


def test_a_worker_is_drained_and_resumed_once_each(host: Host) -> None:
    for desire in ("drain", "drain", "resume", "resume", "drain"):
        host.ask(desire)
    assert host.steps == ["drain", "resume", "drain"]


@pytest.mark.parametrize(("desire", "missing"), [("stop", 0), ("restart", 1)])
def test_only_a_restart_has_a_successor(host: Host, desire: str, missing: int) -> None:
    host.ask(desire)
    host.fence_and_obey()
    host.control.proceed([host.worker])
    assert host.steps == ["stop: end"]
    assert host.control.missing([host.worker]) == missing
    assert host.control.is_over([], all_recovered=True) is (desire == "stop")


def test_stopping_a_worker_for_a_job_that_runs_alone_stops_no_other(host: Host) -> None:
    host.worker.quarantined = True
    host.ask("stop")
    assert host.steps == ["stop: end"]
    assert host.control.missing([host.worker]) == 1


def test_no_worker_runs_jobs_alone_where_operators_have_stopped_all(host: Host) -> None:
    host.table.quarantine_seen_at = 1e9
    assert host.control.wants_quarantined([host.worker])
    host.ask("stop")
    assert not host.control.wants_quarantined([host.worker])
    assert host.control.is_over([], all_recovered=True)


@pytest.mark.parametrize("before", ["", "drain", "stop", "restart", "host stops"])
def test_a_worker_whose_lease_is_lost_is_fenced_once_whatever_it_was_asked(
    host: Host, before: str, caplog: pytest.LogCaptureFixture
) -> None:
    if before == "host stops":
        host.control.stop_within(100)
        host.control.proceed([host.worker])
    else:
        host.ask(before)
    host.table.write(0, lost=1)
    host.fence_and_obey()
    host.worker.is_killed = True  # as a kill that has an effect does
    host.fence_and_obey()
    assert host.worker.fenced == "was given up"
    assert caplog.text.count("its lease was given up") == 1


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"lost": 1}, "its lease was given up"),
        ({"unrenewed": 1}, "its lease could not be renewed in time"),
    ],
)
def test_the_end_of_a_fenced_worker_says_how_it_lost_its_lease_and_is_no_crash(
    host: Host, entry: dict[str, int], reason: str
) -> None:
    host.table.write(0, **entry)
    host.fence_and_obey()
    death = host.control.ended(
        host.worker, host.table.entry(0), crashed=True, reason="killed", lived=0.0
    )
    assert (death.reason, death.crashed) == (reason, False)


def test_a_stop_takes_all_steps_and_a_shorter_one_replaces_it(host: Host) -> None:
    host.control.stop_within(100)
    host.control.proceed([host.worker])
    assert host.steps == ["stop: end"]
    host.control.stop_within(200)
    host.control.proceed([host.worker])
    assert host.steps == ["stop: end"]
    host.control.stop_within(-100)
    host.control.proceed([host.worker])
    assert host.steps == ["stop: end", *ALL]


def test_a_drain_is_over_when_no_job_is_left_that_must_run_alone(
    host_of: Callable[..., Host], kind: Kind
) -> None:
    host = host_of(kind, drain=True)
    host.table.write(0, orderly=1)
    host.table.quarantine_seen_at = 1e9
    host.control.ended(host.worker, host.table.entry(0))
    assert not host.control.is_over([], all_recovered=True)
    assert host.control.wants_quarantined([])
    host.table.quarantine_seen_at = 0.0
    assert not host.control.is_over([], all_recovered=False)
    assert host.control.is_over([], all_recovered=True)


# Recycling: of processes alone, since threads have no limits.


@pytest.fixture
def recycled(host_of: Callable[..., Host], caplog: pytest.LogCaptureFixture) -> Host:
    caplog.set_level("INFO", "django_jobqueue.supervisor")
    host = host_of("process")
    host.table.write(0, exceeded=LIMITS.index("MAX_JOBS"))
    host.fence_and_obey()
    return host


def test_a_worker_at_a_limit_works_until_its_successor_has_registered(
    recycled: Host, caplog: pytest.LogCaptureFixture
) -> None:
    recycled.fence_and_obey()
    assert recycled.control.missing([recycled.worker]) == 1
    workers = [recycled.worker, recycled.successor()]
    recycled.control.fence_and_obey(workers)
    assert (recycled.steps, recycled.control.missing(workers)) == ([], 0)
    recycled.table.write(1, worker=2)
    for _ in range(2):
        recycled.control.fence_and_obey(workers)
    assert (recycled.steps, workers[1].is_ending) == (["stop: end"], False)
    (record,) = caplog.get_records("setup") + caplog.get_records("call")
    assert "has reached MAX_JOBS" in record.getMessage()
    assert recycled.control.missing(workers[1:]) == 0


def test_whoever_dies_first_one_is_left(recycled: Host) -> None:
    control = recycled.control
    assert control.missing([recycled.worker]) == 1
    control.ended(recycled.successor(), recycled.table.entry(1), crashed=True)
    control.fence_and_obey([recycled.worker])
    assert (recycled.steps, control.missing([recycled.worker])) == ([], 1)
    successor = recycled.successor()
    control.ended(recycled.worker, recycled.table.entry(0), crashed=True)
    assert control.missing([successor]) == 0


def test_processes_are_replaced_one_by_one(recycled: Host) -> None:
    workers = [recycled.worker, recycled.successor()]
    recycled.table.write(1, worker=2, exceeded=LIMITS.index("MAX_AGE"))
    recycled.control.fence_and_obey(workers)
    assert [worker.is_recycled for worker in workers] == [True, False]
    recycled.control.fence_and_obey(workers[1:])
    assert workers[1].is_recycled


def test_whoever_stops_a_worker_stops_its_successor(recycled: Host) -> None:
    workers = [recycled.worker, recycled.successor()]
    recycled.table.write(0, desired=DESIRES.index("stop"))
    for _ in range(2):
        recycled.control.fence_and_obey(workers)
    assert [worker.is_ending for worker in workers] == [True, True]
    assert recycled.control.missing(workers) == 0


def test_nobody_is_recycled_by_a_host_that_stops(recycled: Host) -> None:
    recycled.control.stop_within(100)
    assert recycled.control.missing([recycled.worker]) == 0
    recycled.control.proceed([recycled.worker])
    recycled.fence_and_obey()
    assert recycled.steps == ["stop: end"]


# With real workers.


@pytest.fixture
def real(kind: Kind, request: pytest.FixtureRequest) -> Iterator[None]:
    """One worker of this kind, whose jobs have no grace when their host stops."""
    if kind == "process":
        flags = ("--processes", "1", "--threads", "1", "--grace", "0")
        request.getfixturevalue("runworkers")(*flags).started()
        yield
        return
    worker = EmbeddedWorker(WorkerConfig(threads=1), grace=0)
    worker.start()
    eventually(lambda: Worker.objects.filter(state="running"))
    yield
    worker.stop()


@pytest.mark.processes
@pytest.mark.usefixtures("real")
@pytest.mark.parametrize("desire", ["stop", "restart"])
def test_running_jobs_finish_when_their_worker_ends(journal: str, desire: str) -> None:
    jobs.write.enqueue(journal, "ran", 0.5)
    eventually(lambda: jobs.notes(journal))
    row = Worker.objects.get()
    operations.ask_workers([row.id], desire)
    (job,) = eventually(archived)
    assert (job.status, job.worker, job.attempts) == ("succeeded", row.name, 1)
    eventually(lambda: Worker.objects.get(id=row.id).state == "stopped")
