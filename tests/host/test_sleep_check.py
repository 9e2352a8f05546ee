"""A host does nothing in the copy of a database, and says so."""

from __future__ import annotations

import pytest

from django_jobqueue import operations
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.host_status import HostStatus
from django_jobqueue.host.maintenance import sleep_check
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.models import DatabaseIdentity, Host, JobType
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig

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
    assert refusal(maintenance).retry_in == sleep_check.CHECK_EVERY
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


@pytest.mark.usefixtures("maintenance")
def test_who_works_already_goes_on(table: ProcessTable) -> None:
    """The successor of a maintenance process that died renews the leases."""
    table.maintenance_is_ready = True
    HostMaintenance(table, WorkerConfig()).get_ready()
    assert not table.is_asleep
