"""Fixtures of tests about what is told of lost workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue import signals
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.store.connection import OwnConnection
from tests.host.lost import Told, rescuer_on
from tests.store.rows import register

NEWS = ("job_rescued", "job_failed", "job_cancelled", "job_retried", "job_released")


@pytest.fixture
def told() -> Iterator[Callable[[], list[Told]]]:
    """Every signal about the end of a job."""
    heard: list[Told] = []
    by_signal = {id(getattr(signals, name)): name for name in NEWS}

    def receive(signal: Any, sender: object, **arguments: Any) -> None:
        heard.append(Told(by_signal[id(signal)], arguments["id"], arguments))

    def all_of_them() -> list[Told]:
        assert announcer.flush(20)
        return heard

    for name in NEWS:
        getattr(signals, name).connect(receive)
    yield all_of_them
    for name in NEWS:
        getattr(signals, name).disconnect(receive)


@pytest.fixture
def rescuer(own: OwnConnection) -> Rescuer:
    """One that gives up whoever lapsed at once."""
    made = rescuer_on(own)
    made._patient_until = 0.0  # private: it has been there for longer than a lease
    return made


@pytest.fixture
def holder(own: OwnConnection) -> int:
    """The id of a worker that is alive."""
    return register(own)
