"""Workers in the test's own process, and gates at which their jobs wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

import django_jobqueue
from django_jobqueue.embedded import EmbeddedWorker
from tests.embedded.programs import program as program
from tests.sample import jobs
from tests.support.run_workers import BRISK

Start = Callable[..., EmbeddedWorker]


@pytest.fixture(autouse=True)
def _look_around_often(monkeypatch: pytest.MonkeyPatch) -> None:
    for path, value in {**BRISK, "embedded.embedded_supervisor.BEAT": 0.02}.items():
        monkeypatch.setattr(f"django_jobqueue.{path}", value)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """The gate at which ``stay("gate")`` waits; it is open in the end."""
    jobs.gates["gate"] = threading.Event()
    yield jobs.gates["gate"]
    jobs.gates.pop("gate").set()


@pytest.fixture
def start(transactional_db: None) -> Iterator[Start]:
    """Start workers, stopped at once in the end: ``start(threads=1)``."""
    made: list[EmbeddedWorker] = []

    def make(**options: Any) -> EmbeddedWorker:
        made.append(django_jobqueue.worker(**{"threads": 2, **options}))
        made[-1].start()
        return made[-1]

    yield make
    for worker in made:
        worker.stop(timeout=0)


@pytest.fixture
def lite() -> Iterator[None]:
    default = connections.settings["default"]
    engine = "django.db.backends.sqlite3"
    connections.settings["lite"] = {**default, "ENGINE": engine, "NAME": ":memory:"}
    with override_settings(JOBQUEUE={"DATABASE": "lite"}):
        yield
    connections["lite"].close()
    del connections["lite"], connections.settings["lite"]
