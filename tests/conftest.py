"""What all tests have: their database, their fixtures, and how they are chosen."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from django.db import connection
from django.test import TransactionTestCase
from pytest_django import DjangoDbBlocker

from django_jobqueue import signals
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.operations import hosts as operators_hosts
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.session import PINNED
from tests.support import database, failure_report, selection
from tests.support.hand_driven import make_worker as make_worker
from tests.support.hand_driven import worker as worker
from tests.support.kept_connections import NAME, KeptConnection
from tests.support.kept_connections import kept_connections as kept_connections
from tests.support.run_workers import runworkers as runworkers
from tests.support.steadiness import steadiness as steadiness
from tests.support.waiting import eventually

# A busy machine makes no test fail: values are only slow to be made. "make test-all"
# tries more of them, by --hypothesis-profile=thorough.
for profile, examples in (("thorough", 1_000), ("busy", 50)):
    hypothesis.settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("busy")

# private: pytest-django makes the test cases, and has no other place for this.
TransactionTestCase._fixture_teardown = database.empty  # type: ignore[method-assign]
# private: as above; the other databases have their own fixtures.
TransactionTestCase._should_reload_connections = classmethod(  # type: ignore[method-assign]
    lambda cls: cls.databases != {"default"}
)

# Whoever starts the tests in the background may have them ignore Ctrl-C, and whatever
# they start would inherit that.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


pytest_addoption = selection.pytest_addoption
pytest_configure = selection.pytest_configure
pytest_collection_modifyitems = selection.pytest_collection_modifyitems
pytest_runtest_makereport = failure_report.pytest_runtest_makereport


FEW = 4  # files that run in this process, as others would only start after it


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for each core: half the time tests wait for the database and processes."""
    files = 0
    for argument in config.args:
        path = Path(argument.partition("::")[0])
        files += len(list(path.rglob("test_*.py"))) if path.is_dir() else 1
    return 0 if files <= FEW else 2 * (os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the collector of garbage rest while thousands of tests are made, and look at
    none of them later."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server that the settings started, once nobody uses it."""
    if hasattr(config, "workerinput") or os.environ.get("JOBQUEUE_KEEP_POSTGRES"):
        return
    settings = sys.modules.get("tests.settings")
    if settings is not None and settings.SERVER is not None:
        settings.SERVER.stop()


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """A database of this process."""
    prefix = os.environ.get("JOBQUEUE_TEST_DB", "test")  # for two runs at a time
    name = f"{prefix}_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with database.own_database("default", name, django_db_blocker):
        yield


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
            " AND backend_type = 'client backend' AND application_name <> %s",
            [NAME],
        )
        return cursor.fetchall()


@pytest.fixture(autouse=True)
def _handlers_of_a_test_are_gone_after_it() -> Iterator[None]:
    """System checks of other tests would complain about them, and miss another's."""
    declared = registry._by_name  # private: iterating would make lazy declarations
    before = {name: registry.sender(name) for name in declared}
    planned = set(schedules.names)
    yield
    for name in {*schedules.names, *schedules.without_call} - planned:
        schedules.remove(name)
    for name, each in list(declared.items()):
        if name not in before and "<locals>" in each.function.__qualname__:
            registry.remove(name)
    assert before == {name: registry.sender(name) for name in before}


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Without what asyncio says, whenever garbage is collected, of the event loops of
    tests before."""

    def is_of_this_test(record: logging.LogRecord) -> bool:
        return record.name != "asyncio"

    caplog.handler.addFilter(is_of_this_test)
    yield caplog
    caplog.handler.removeFilter(is_of_this_test)


@pytest.fixture
def own(transactional_db: None, kept_connections: None) -> Iterator[OwnConnection]:
    """A connection of the machinery's own, beside Django's."""
    made = KeptConnection("tests", plans=PINNED)
    yield made
    made.leave()


@pytest.fixture
def other(transactional_db: None, kept_connections: None) -> Iterator[OwnConnection]:
    """Another one."""
    made = KeptConnection("tests", plans=PINNED)
    yield made
    made.leave()


@pytest.fixture
def requests_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers and hosts are asked at once, also in the transaction of a test, which
    never commits."""
    # private: it waits for the commit, which never comes.
    monkeypatch.setattr(operators_hosts, "_at_commit", lambda db, ask: ask())


@pytest.fixture
def journal(tmp_path: Path) -> str:
    """A file that handlers write to."""
    return str(tmp_path / "journal")


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
