"""Fixtures: a second connection, workers driven by hand, workers in processes."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.db import connection, connections
from django.test import TransactionTestCase

from django_jobqueue import logs, retries, signals
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.enqueueing.immediate_jobs import memory
from django_jobqueue.models import ArchivedJob, QueuedJob
from django_jobqueue.operations import bulk_counting, erasure_chunks
from django_jobqueue.operations import hosts as operators_hosts
from django_jobqueue.operations import workers as operators_workers
from django_jobqueue.processes.lane_progress import SharedLaneProgress
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import PINNED, DjangoDatabase, OwnConnection
from django_jobqueue.workers.worker import Worker
from tests import emptying
from tests.time_limit import (
    pytest_collection_modifyitems as pytest_collection_modifyitems,
)
from tests.time_limit import pytest_runtest_setup as pytest_runtest_setup

JSON_TYPES = (114, 199, 3802, 3807)  # json, jsonb, and arrays of them
ROOT = Path(__file__).resolve().parent.parent

# A busy machine makes no test fail: values are only slow to be made.
hypothesis.settings.register_profile(
    "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("busy")

TransactionTestCase._fixture_teardown = emptying.empty  # type: ignore[method-assign]

# Whoever starts the tests in the background may have them ignore Ctrl-C, and whatever
# they start would inherit that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _no_wait_is_drawn_near_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job whose first attempt failed is not due again as long as its test goes on."""
    draw = random.random
    monkeypatch.setattr(retries.random, "random", lambda: (1 + draw()) / 2)


@pytest.fixture(autouse=True)
def _no_statement_returns_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's connections give its text, and the machinery's own its value: what may
    be read by both is cast to text."""
    execute = DjangoDatabase._execute

    def checked(self: DjangoDatabase, cursor: Any, statement: str, params: Any) -> None:
        execute(self, cursor, statement, params)
        columns = cursor.description or ()
        guilty = [c.name for c in columns if c.type_code in JSON_TYPES]
        assert guilty == [], statement

    monkeypatch.setattr(DjangoDatabase, "_execute", checked)


@pytest.fixture(autouse=True)
def _drafts_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, a draft's jobs are counted while it is made."""
    monkeypatch.setattr(bulk_counting, "AT_ONCE", 60.0)
    monkeypatch.setattr(erasure_chunks, "AT_ONCE", 60.0)


@pytest.fixture(autouse=True)
def _handlers_of_a_test_are_gone_after_it() -> Iterator[None]:
    """System checks of other tests would complain about them, and miss another's."""
    before, planned = dict(registry._senders), set(schedules.names)
    yield
    for name in {*schedules.names, *schedules.without_call} - planned:
        schedules.remove(name)
    for declaration in list(registry._by_name.values()):
        own = declaration.name not in before
        if own and "<locals>" in declaration.function.__qualname__:
            registry.remove(declaration.name)
    assert before.items() <= registry._senders.items()


@pytest.fixture(autouse=True)
def _immediate_jobs_of_a_test_are_gone_after_it() -> Iterator[None]:
    yield
    memory.clear()


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Without what asyncio says, whenever garbage is collected, of the event loops of
    tests before."""

    def is_of_this_test(record: logging.LogRecord) -> bool:
        return record.name != "asyncio"

    caplog.handler.addFilter(is_of_this_test)
    yield caplog
    caplog.handler.removeFilter(is_of_this_test)


@pytest.fixture(autouse=True)
def _successes_are_logged_by_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that starts in this process looks at it, and so do the tests after."""
    monkeypatch.setattr(logs, "shows_successes", False)


@pytest.fixture
def transactional_db(transactional_db: None) -> Iterator[None]:
    """Everybody else's sessions are over after the test: a process that is left would
    take the next test's jobs, and keep the database from being dropped. Those that are
    not are ended, so that only this test fails for them."""
    yield
    try:
        eventually(lambda: not _other_sessions(), what=_other_sessions)
    except AssertionError:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid = ANY(%s)",
                [[row[0] for row in _other_sessions()]],
            )
        raise


def _other_sessions() -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, application_name, state, query FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
        return cursor.fetchall()


def pytest_xdist_auto_num_workers() -> int:
    """Two for each core: half the time tests wait for the database and processes."""
    return 2 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from looking at thousands of tests each time."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that the settings started, once nobody uses it."""
    if hasattr(config, "workerinput") or os.environ.get("JOBQUEUE_KEEP_POSTGRES"):
        return
    settings = sys.modules.get("tests.settings")
    if settings is not None and settings.SERVER is not None:
        settings.SERVER.stop()


def some_slow(values: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Values, or tuples of them, to be tried, of which all but these are left out
    unless asked for."""
    marks = {True: (), False: (pytest.mark.slow,)}
    return [
        pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=marks[v in always])
        for v in values
    ]


def eventually(
    condition: Callable[[], Any],
    *,
    within: float = 20.0,
    what: str | Callable[[], Any] = "",
) -> Any:
    """Wait until the condition holds, and return what it returned."""
    deadline = time.monotonic() + within
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            seen = what() if callable(what) else what
            raise AssertionError(f"not within {within} s: {seen or condition}")
        time.sleep(0.005)


@pytest.fixture
def own(transactional_db: None) -> Iterator[OwnConnection]:
    """A connection of the machinery's own, beside Django's."""
    connection_ = OwnConnection("tests", plans=PINNED)
    yield connection_
    connection_.close()


@pytest.fixture
def other(transactional_db: None) -> Iterator[OwnConnection]:
    """Another one."""
    connection_ = OwnConnection("tests", plans=PINNED)
    yield connection_
    connection_.close()


@pytest.fixture
def requests_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and hosts are asked at once, also in the transaction of a test, which
    never commits."""
    monkeypatch.setattr(operators_workers, "_ask", lambda db, ids, ask: ask(db, ids))
    monkeypatch.setattr(
        operators_hosts,
        "_ask",
        lambda db, hosts, ask: hosts and ask(db, [host.id for host in hosts]),
    )


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """A file that handlers write to."""
    return str(tmp_path / "journal")


class HandDriven:
    """A worker whose loops are called one by one: no thread decides anything."""

    def __init__(
        self, config: WorkerConfig, lane_progress: SharedLaneProgress | None = None
    ) -> None:
        self.worker = Worker(config, lane_progress=lane_progress)
        self.worker.register()
        self.worker.build()
        # On a busy machine a sweep is taken for a long one, and the next one put off.
        scanner = self.worker.dispatcher._scanner
        scanner._full_scans.took = lambda seconds, **instead_of: None  # type: ignore[method-assign]

    def claim(self) -> float:
        """One round of the dispatcher; returns the rest it asks for."""
        return self.worker.dispatcher.tick()

    def run(self) -> None:
        """Wait until every claimed handler has ended."""
        eventually(
            lambda: not any(e.running or e.buffered for e in self.worker.executors),
            what="handlers to end",
        )

    def finish(self) -> None:
        """One round of the completer."""
        self.worker.completer.tick()

    def work(self) -> None:
        """Claim, run and finish until nothing can be claimed any more."""
        for _ in range(100):
            self.claim()
            self.run()
            self.finish()
            if self.worker.is_idle:
                return
        raise AssertionError("the worker found no end")

    def close(self) -> None:
        """Let its threads and connections go."""
        for executor in self.worker.executors:
            executor.stop(5)
        self.worker.dispatcher.close()
        self.worker.completer.close()
        self.worker.reporter.close()
        if self.worker.config.listen:
            self.worker.listener.close()


@pytest.fixture
def make_worker(transactional_db: None) -> Iterator[Callable[..., HandDriven]]:
    """Make hand-driven workers: ``make_worker(threads=2)``; of one host, if they share
    the progress of lanes."""
    made: list[HandDriven] = []

    def make(
        lane_progress: SharedLaneProgress | None = None, **config: Any
    ) -> HandDriven:
        defaults: dict[str, Any] = {"threads": 4, "async_slots": 10, "listen": False}
        made.append(HandDriven(WorkerConfig(**{**defaults, **config}), lane_progress))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


@pytest.fixture
def worker(make_worker: Callable[..., HandDriven]) -> HandDriven:
    """One hand-driven worker."""
    return make_worker()


class RunWorkers:
    """A real ``runworkers``, and what it said."""

    def __init__(
        self,
        log: Path,
        flags: tuple[str, ...],
        env: dict[str, str],
        within: tuple[str, ...] = (),
    ) -> None:
        self.log = log
        self._file = log.open("ab")
        self.process = subprocess.Popen(
            [*within, sys.executable, "-m", "django", "runworkers", *flags],
            env={**env, "RUNWORKERS_LOG": str(log)},
            cwd=log.parent,
            stdout=self._file,
            stderr=self._file,
            start_new_session=True,
        )

    @property
    def output(self) -> str:
        """Everything that it wrote."""
        return self.log.read_text()

    def workers(self) -> list[int]:
        """Process ids of its living workers, as the database knows them."""
        name = f":{self.process.pid}"
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM jobqueue_worker WHERE state = 'running' "
                "AND right(supervisor, length(%s)) = %s ORDER BY id",
                [name, name],
            )
            return [pid for (pid,) in cursor.fetchall()]

    def started(self, count: int = 1) -> list[int]:
        """Wait until this many workers are there; return their process ids."""
        return eventually(
            lambda: (pids := self.workers())[: len(pids) if len(pids) >= count else 0],
            what=f"workers to start:\n{self.output}",
        )

    def signal(self, number: int) -> None:
        """Send a signal to the supervisor."""
        self.process.send_signal(number)

    def wait(self, within: float = 40.0) -> int:
        """Wait for its end; return the exit code."""
        return self.process.wait(within)

    def stop(self) -> int:
        """Stop it in good order."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def close(self) -> None:
        """End it in any case, and whatever it and its handlers started."""
        eventually(lambda: not self._kill(), what="processes to die")
        self.process.wait()
        self._file.close()

    def _kill(self) -> list[int]:
        """Kill all that inherited its environment; returns who was still there."""
        mark = f"RUNWORKERS_LOG={self.log}".encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
                    os.kill(found[-1], signal.SIGKILL)
        return found


@pytest.fixture
def runworkers(
    transactional_db: None, tmp_path: Path
) -> Iterator[Callable[..., RunWorkers]]:
    """Start real workers: ``runworkers("--threads", "2")``; ``within`` is a command
    that starts others."""
    made: list[RunWorkers] = []

    def start(*flags: str, within: tuple[str, ...] = (), **env: str) -> RunWorkers:
        log = tmp_path / f"runworkers-{len(made)}.log"
        made.append(RunWorkers(log, flags, {**worker_environment(), **env}, within))
        return made[-1]

    yield start
    for one in made:
        one.close()


def worker_environment() -> dict[str, str]:
    """The environment in which a process uses this test's database."""
    settings = connections["default"].settings_dict
    host = str(settings["HOST"]).replace("/", "%2F")
    user = f"{settings['USER']}@" if settings["USER"] else ""
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://{user}{host}{port}/{settings['NAME']}",
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "PYTHONPATH": str(ROOT),
    }


@pytest.fixture
def operated() -> Iterator[list[dict[str, Any]]]:
    """What receivers of the signal ``operated`` were told."""
    told: list[dict[str, Any]] = []

    def receive(*, sender: str, **arguments: Any) -> None:
        arguments.pop("signal")
        told.append({"verb": sender, **arguments})

    signals.operated.connect(receive)
    yield told
    signals.operated.disconnect(receive)


def archived(**filters: Any) -> list[ArchivedJob]:
    """Archived jobs, oldest first."""
    return list(ArchivedJob.objects.filter(**filters).order_by("finished_at", "id"))


def queued(**filters: Any) -> list[QueuedJob]:
    """Queued jobs, in order of their ids."""
    return list(QueuedJob.objects.filter(**filters).order_by("id"))


@contextmanager
def overridden(job_type: str, **values: Any) -> Iterator[None]:
    """A job type with these columns, for a while."""
    from django_jobqueue.models import JobType

    JobType.objects.filter(name=job_type).update(**values)
    yield
