"""A host starts whatever others have changed and not committed, and declares later what
was locked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_jobqueue import PerKey, cron, job, remote_job, rooms
from django_jobqueue.contrib.http.token_operations import create_token
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.host.maintenance.declarer import Declarer
from django_jobqueue.host.maintenance.host_maintenance import HostMaintenance
from django_jobqueue.models import JobType, KeyLimit
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.contrib.http.conftest import ALL, Program
from tests.store.meanwhile import OpenTransaction, open_transaction

pytestmark = pytest.mark.django_db(transaction=True)

NAME, OTHER = "tests.declared", "tests.declared_too"
RARELY = cron("0 0 1 1 *", tz="UTC")


def act(key: str = "") -> None: ...


@pytest.fixture(autouse=True)
def _declared(own: OwnConnection, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the sample declares is declared, and a job type with a limit by key and a
    schedule. Searches for what is locked are short."""
    monkeypatch.setattr("django_jobqueue.store.partial_batches.BRIEF", 0.01)
    declare(2)
    Declarer().declare(own)
    yield
    for name in (NAME, OTHER):
        registry.remove(name)
        schedules.remove(name)


def declare(concurrency: int, name: str = NAME) -> None:
    registry.remove(name)
    schedules.remove(name)
    per_key = PerKey("key", concurrency=concurrency)
    handler: Handler = job(name=name, concurrency=concurrency, per_key=per_key)(act)
    handler.at(RARELY, name=name, missed="all" if concurrency > 2 else "once")()


def start() -> None:
    """What comes before the first claim; a wait for a lock fails it."""
    HostMaintenance(ProcessTable(1), WorkerConfig()).get_ready()


def lock_every_row(transaction: OpenTransaction) -> None:
    for model in rooms.models():
        table = model._meta.db_table
        transaction.run(f"SELECT FROM {table} FOR UPDATE")


def declared(name: str = NAME) -> tuple[object, ...]:
    """What rows say of it."""
    return (
        *JobType.objects.filter(name=name).values_list("concurrency", flat=True),
        *KeyLimit.objects.filter(name=name).values_list("concurrency", flat=True),
        *Schedule.objects.filter(name=name).values_list("missed", flat=True),
    )


def test_a_start_with_the_same_code_waits_for_nobody(other: OwnConnection) -> None:
    with open_transaction(other) as transaction:
        lock_every_row(transaction)
        start()


def test_what_is_locked_is_declared_when_it_no_longer_is(
    own: OwnConnection, other: OwnConnection
) -> None:
    declare(5)
    declare(5, OTHER)
    gone = Schedule.objects.exclude(name__in=[NAME, OTHER]).first()
    assert gone is not None
    Schedule.objects.filter(name=gone.name).update(name="gone")
    declarer = Declarer()
    declarer.connection = own
    with open_transaction(other) as transaction:
        lock_every_row(transaction)
        start()
        assert declarer.tick() < 60
        assert declared() == (2, 2, "once")
        assert declared(OTHER) == (5, 5, "all")
        assert Schedule.objects.get(name="gone").gone_at is None
    assert declarer.tick() > 60
    assert declared() == (5, 5, "all")
    assert Schedule.objects.get(name="gone").gone_at is not None


def test_a_row_that_others_have_inserted_and_not_committed_keeps_no_other_one(
    own: OwnConnection, other: OwnConnection
) -> None:
    declare(5, OTHER)
    declare(5)
    Schedule.objects.all().delete()
    JobType.objects.filter(name=NAME).delete()
    with open_transaction(other, undone=True) as transaction:
        transaction.run(f"INSERT INTO jobqueue_jobtype (name) VALUES ('{NAME}')")
        start()
        assert declared(OTHER) == (5, 5, "all")
        assert not JobType.objects.filter(name=NAME).exists()
    start()
    assert declared() == (5, 5, "all")


def test_a_remote_worker_registers_while_its_type_is_locked(
    other: OwnConnection,
) -> None:
    registry.remove(NAME)
    schedules.remove(NAME)
    remote_job(NAME, concurrency=7)
    program = Program(create_token("fleet", ALL).text)
    body = {"name": "node", "job_types": [NAME], "slots": 2}
    JobType.objects.filter(name=NAME).update(handler="")
    with open_transaction(other) as transaction:
        transaction.run("SELECT FROM jobqueue_jobtype FOR UPDATE")
        assert program.send("POST", "/workers", body).status_code == 201
        assert declared()[0] == 2
    assert program.send("POST", "/workers", body).status_code == 201
    assert declared()[0] == 7
