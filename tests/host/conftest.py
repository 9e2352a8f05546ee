"""Fixtures of tests about what is told of lost workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection

from django_jobqueue import signals
from django_jobqueue.execution.signal_sender import announcer
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.host.lost import Told
from tests.store.rows import ONCE

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
    made = Rescuer(
        own,
        DeadlineWatch(own, WorkerConfig()),
        on_quarantined=lambda seen_at: None,
        on_recovered=lambda number: None,
    )
    made._patient_until = 0.0
    return made


@pytest.fixture
def refusing() -> Iterator[str]:
    """A job type whose jobs the database refuses to change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF old.job_type = '{ONCE}' THEN RAISE EXCEPTION 'not this one'; END IF; "
            "RETURN coalesce(new, old); END $$"
        )
        cursor.execute(
            "CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON jobqueue_queuedjob "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
        yield ONCE
        cursor.execute("DROP FUNCTION refuse CASCADE")
