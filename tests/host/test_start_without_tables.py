"""A host that starts before its tables are there."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection


@pytest.mark.django_db(transaction=True)
def test_a_start_that_fails_waits_longer_each_time_and_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def declare(connection: OwnConnection, *args: Any) -> None:
        connection.run("SELECT FROM jobqueue_not_migrated")

    monkeypatch.setattr(job_types, "declare", declare)
    maintenance = HostMaintenance(ProcessTable(1), WorkerConfig())
    caplog.set_level(logging.WARNING, "django_jobqueue")
    waits = []
    for _ in range(8):
        with pytest.raises(StoreUnavailable) as caught:
            maintenance.get_ready()
        waits.append(caught.value.retry_in)
    assert max(waits[:2]) < min(waits[6:])
    assert len(caplog.records) == 1
    assert "run manage.py migrate" in caplog.text
