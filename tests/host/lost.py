"""Jobs of workers that are gone: how they come about, what is said of them, and how the
database can fail meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import Database, OwnConnection
from tests.store.rows import ADD, ago, make


class Told(NamedTuple):
    name: str
    id: UUID
    arguments: dict[str, Any]


def rescuer_on(
    own: OwnConnection,
    recovered: list[Any] | None = None,
    *,
    quarantined: list[Any] | None = None,
    deadlines: DeadlineWatch | None = None,
) -> Rescuer:
    """One that has just begun. What it says goes to lists: up to which death all are
    looked after, and when it saw quarantined jobs."""
    return Rescuer(
        own,
        deadlines or DeadlineWatch(own, WorkerConfig()),
        on_quarantined=([] if quarantined is None else quarantined).append,
        on_recovered=([] if recovered is None else recovered).append,
    )


def held_by(worker: int, job_type: str = ADD, **columns: Any) -> UUID:
    """A job that this worker has run for three seconds, and that waited for two."""
    started = {"started_at": ago(3), "run_after": ago(5), "status": "running"}
    return make(job_type, worker_id=worker, attempts=1, **{**started, **columns})


def lines(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [r for r in caplog.records if r.name == "django_jobqueue.attempt"]


@contextmanager
def commits(
    monkeypatch: pytest.MonkeyPatch, *, arrive: bool
) -> Iterator[Callable[[], None]]:
    """Let the answers of commits be lost; whether the commits themselves arrive."""
    transaction = OwnConnection.transaction

    @contextmanager
    def lossy(self: OwnConnection) -> Iterator[Database]:
        try:
            with transaction(self) as open_one:
                yield open_one
                if not arrive:
                    raise StoreUnavailable("cut off", retry_in=0)
        finally:
            self.close()
        raise StoreUnavailable("cut off", retry_in=0)

    with monkeypatch.context() as patch:
        patch.setattr(OwnConnection, "transaction", lossy)
        yield patch.undo
