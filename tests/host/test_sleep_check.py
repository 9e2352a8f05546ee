"""A host does nothing in the copy of a database, and says so."""

from __future__ import annotations

import pytest

from django_jobqueue import operations
from django_jobqueue.embedded.threaded_worker import ThreadedWorker
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.host_status import HostStatus
from django_jobqueue.host.maintenance import sleep_check
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.models import DatabaseIdentity, Host, JobType, QueuedJob
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import database_identity
from tests.sample import jobs

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def table() -> ProcessTable:
    return ProcessTable(2)


@pytest.fixture
def maintenance(table: ProcessTable, transactional_db: None) -> HostMaintenance:
    """That of a host on a restored dump."""
    DatabaseIdentity.objects.create(id=1, identity="other", server_version=18)
    return HostMaintenance(table, WorkerConfig())


def refusal(maintenance: HostMaintenance) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as raised:
        maintenance.get_ready()
    return raised.value


def test_it_writes_nothing_and_begins_when_it_is_woken(
    maintenance: HostMaintenance, table: ProcessTable
) -> None:
    JobType.objects.filter(name="tests.sample.add").delete()
    assert refusal(maintenance).retry_in == database_identity.CHECK_EVERY
    assert table.is_asleep
    assert not JobType.objects.filter(name="tests.sample.add").exists()
    assert not Host.objects.exists()
    assert operations.wake()
    maintenance.get_ready()
    assert not table.is_asleep
    assert JobType.objects.filter(name="tests.sample.add").exists()


def test_the_log_says_why_and_the_way_out_now_and_then(
    maintenance: HostMaintenance,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal(maintenance)
    refusal(maintenance)
    (line,) = [one for one in caplog.records if one.levelname == "ERROR"]
    assert line.getMessage().startswith("This database is a copy: ")
    assert line.getMessage().endswith("run: manage.py jobqueue wake")
    assert vars(line)["event"] == "host.asleep"
    monkeypatch.setattr(sleep_check, "LOG_EVERY", 0.0)
    caplog.clear()
    maintenance._sleep_check._log_at = 0.0  # private: a minute has passed
    refusal(maintenance)
    assert len(caplog.records) == 1


def test_systemd_is_told(maintenance: HostMaintenance, table: ProcessTable) -> None:
    refusal(maintenance)
    assert str(HostStatus.of(table)).startswith("asleep until jobqueue wake: ")


def restored() -> None:
    """The database is that of a dump now."""
    DatabaseIdentity.objects.update(identity="other")


def test_a_host_that_works_sleeps_when_its_database_was_restored(
    table: ProcessTable, transactional_db: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Its connections were lost, so it makes others."""
    maintenance = HostMaintenance(table, WorkerConfig())
    maintenance.get_ready()
    restored()
    # private: the one of any of its threads
    renewing = maintenance._connection("renewer", pooled=True)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="is a copy") as raised:
            renewing.run("SELECT 1")
    assert not raised.value.is_outage
    assert table.is_asleep
    assert not HostStatus.of(table).is_ready
    assert [vars(one)["event"] for one in caplog.records if one.levelname == "ERROR"]
    operations.wake()
    renewing.run("SELECT 1")
    assert not table.is_asleep
    renewing.close()


def test_its_workers_do_nothing_either(
    table: ProcessTable, transactional_db: None
) -> None:
    HostMaintenance(table, WorkerConfig()).get_ready()
    jobs.add.enqueue(1)
    worker = ThreadedWorker(
        WorkerConfig(threads=1, listen=False), ensure_leased=lambda: None
    )
    worker.register()
    worker.build()
    restored()
    with pytest.raises(StoreUnavailable, match="is a copy"):
        worker.register()
    worker.dispatcher.round()
    assert QueuedJob.objects.get().status == "queued"
    operations.wake()
    worker.dispatcher.round()
    assert QueuedJob.objects.get().status == "running"
    worker.end(5)


def test_the_successor_of_a_maintenance_process_sleeps_too(
    maintenance: HostMaintenance, table: ProcessTable
) -> None:
    """It died of the restore, perhaps."""
    table.maintenance_is_ready = True
    refusal(maintenance)
    assert table.is_asleep
