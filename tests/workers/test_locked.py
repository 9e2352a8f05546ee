"""What others have locked keeps only what needs it: one item, one type, one worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import psycopg
import pytest
from django.db import transaction

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.host.maintenance.dead_worker import JobRecovery
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.models import FailureGroup, QueuedJob, Worker
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import partial_batches
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.partial_batches import each_it_can
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.store.rows import LIMITED, ago, make
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.waiting import eventually

Make = Callable[..., HandDriven]

FOLLOWER: Final = "tests.sample.follow_with_options"  # unique by its status
HOLD_KEY: Final = f"""
INSERT INTO jobqueue_queuedjob (job_type, data)
VALUES ('{FOLLOWER}', '{{"job": "x", "status": "%s"}}')
"""


@dataclass(frozen=True)
class Lock:
    """What somebody holds, and the jobs that cannot end meanwhile."""

    statement: str
    needs_it: Callable[[], set[UUID]]


def _plain() -> set[UUID]:
    return {jobs.add.enqueue(99).id}


def _failing() -> set[UUID]:
    return {jobs.fail.using(max_attempts=1).enqueue().id for _ in range(3)}


def _followed() -> set[UUID]:
    ids = {jobs.add.enqueue(n).id for n in range(2)}
    QueuedJob.objects.filter(id__in=ids).update(followers={"on_complete": [FOLLOWER]})
    return ids


LOCKS: Final = {
    "the row of a job": Lock(
        "SELECT FROM jobqueue_queuedjob WHERE data -> 'a' = '99' FOR UPDATE", _plain
    ),
    "a failure group": Lock(
        "UPDATE jobqueue_failuregroup SET state = 'resolved'", _failing
    ),
    "a new failure group": Lock("failure group", _failing),
    "the key of a unique follower": Lock(HOLD_KEY % "succeeded", _followed),
}


@pytest.mark.parametrize("name", LOCKS)
def test_outcomes_that_need_a_lock_of_others_hold_up_no_other(
    make_worker: Make, own: OwnConnection, name: str
) -> None:
    lock = LOCKS[name]
    worker = make_worker(threads=8)
    statement = lock.statement
    if "group" in name:  # it comes to be with the first failure
        jobs.fail.using(max_attempts=1).enqueue()
        worker.work()
        if name == "a new failure group":
            group = FailureGroup.objects.get()
            statement = (
                "INSERT INTO jobqueue_failuregroup (fingerprint, coarse, error_class, "
                f"frame, template) "
                f"VALUES ('{group.fingerprint}', '{group.coarse}', '', '', '')"
            )
            group.delete()
        else:
            FailureGroup.objects.update(state="resolved")
    before = {job.id for job in archived()}
    waiting = lock.needs_it()
    with open_transaction(own) as transaction_:
        others = {jobs.add.enqueue(n).id for n in range(20)}
        worker.claim()
        transaction_.run(statement)
        for _ in range(8):
            worker.run()
            worker.finish()
            worker.claim()
        assert {job.id for job in archived()} - before == others
        assert not worker.worker.is_empty

        # The same while it is known, and at an end that has no time to wait.
        late = {jobs.add.enqueue(n).id for n in range(5)}
        worker.worker.dispatcher.jobs_arrived()
        worker.claim()
        worker.run()
        completer = worker.worker.completer
        began = time.monotonic()
        completer.close()
        assert time.monotonic() - began < 60
        assert {job.id for job in archived()} - before == others | late
    eventually(lambda: (completer.tick(), worker.worker.is_empty)[1])
    over = {job.id: job.status for job in archived()}
    assert waiting <= over.keys()
    assert {over[id] for id in waiting} <= {"succeeded", "failed"}


@pytest.mark.parametrize(
    "claimed_alone", [False, True], ids=["ordinary", "in quarantine"]
)
def test_a_job_type_that_is_locked_keeps_no_other_from_being_claimed(
    make_worker: Make, own: OwnConnection, claimed_alone: bool
) -> None:
    config = WorkerConfig(threads=4).for_quarantined() if claimed_alone else None
    worker = make_worker() if config is None else make_worker(quarantined=True)
    data = {"journal": "/dev/null"}
    limited = make(LIMITED, data=data, quarantined=claimed_alone, priority=50)
    other = make(data={"a": 1}, quarantined=claimed_alone)
    with open_transaction(own) as transaction_:
        transaction_.fetch(
            "UPDATE jobqueue_jobtype SET concurrency_override = 1 "
            f"WHERE name = '{LIMITED}' RETURNING name"
        )
        worker.claim()
        assert [a.job.id for a in worker.worker.held] == [other]
        worker.run()
        worker.finish()
    worker.worker.dispatcher.policies_changed()  # as its commit notifies
    worker.work()
    assert {job.id for job in archived()} == {limited, other}


def test_a_locked_row_of_a_worker_keeps_it_from_nothing(
    make_worker: Make, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = make_worker()
    dispatcher = worker.worker.dispatcher
    monkeypatch.setattr(dispatcher, "_gets_notifications", lambda: True)
    with open_transaction(own) as transaction_:
        transaction_.fetch("SELECT FROM jobqueue_worker FOR UPDATE")
        for count in (1, 2):
            assert dispatcher.tick() <= 1.0, "it polls, since nobody can notify it"
            jobs.add.enqueue(1)
            dispatcher.jobs_arrived()
            worker.claim()
            worker.run()
            worker.finish()
            assert len(archived()) == count


def test_jobs_that_are_given_back_wait_for_no_locked_one(
    worker: HandDriven, own: OwnConnection
) -> None:
    locked, *others = [make(data={"a": n}) for n in range(4)]
    claimer = worker.worker.dispatcher.claimer
    worker.claim()
    with open_transaction(own) as transaction_:
        transaction_.fetch(
            f"SELECT FROM jobqueue_queuedjob WHERE id = '{locked}' FOR UPDATE"
        )
        claimer.give_back(list(worker.worker.held))
        claimer.release_unconfirmed()
        back = QueuedJob.objects.filter(status="queued").values_list("id", flat=True)
        assert set(back) == set(others)
        assert 0 < claimer.unconfirmed.seconds_until_due <= 1.0
    eventually(
        lambda: (
            (claimer.release_unconfirmed(), QueuedJob.objects.get(id=locked))[1].status
            == "queued"
        )
    )


REFUSE = f"""
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'not today'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON jobqueue_queuedjob FOR EACH ROW
  WHEN (OLD.job_type = '{jobs.fail.name}' AND NEW.status = 'running')
  EXECUTE FUNCTION refuse()
"""
ACCEPT = "DROP TRIGGER refuse ON jobqueue_queuedjob; DROP FUNCTION refuse"


def test_a_type_whose_claims_are_refused_keeps_no_other_from_being_claimed(
    worker: HandDriven, own: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    refused = make(jobs.fail.name, priority=50)
    others = [make(data={"a": 1}), make(LIMITED, data={"journal": "/dev/null"})]
    with own.raw() as raw:
        raw.execute(REFUSE, prepare=False)
    try:
        worker.claim()
        assert {a.job.id for a in worker.worker.held} == set(others)
        assert "No jobs of tests.sample.fail can be claimed for now" in caplog.text
    finally:
        with own.raw() as raw:
            raw.execute(ACCEPT, prepare=False)
    worker.worker.dispatcher.policies_changed()
    worker.work()
    assert refused in {job.id for job in archived()}


@pytest.mark.parametrize(
    "columns",
    [
        {"attempts": 2**31 - 1},
        {"fence": 2**63 - 1},
        {"crashes": 2**31 - 1},
        {"attempts": 2**31 - 1, "fence": 2**63 - 1, "quarantined": True},
    ],
)
def test_a_row_with_the_greatest_numbers_keeps_no_other_from_being_claimed(
    make_worker: Make, columns: dict[str, int]
) -> None:
    worker = make_worker(quarantined=bool(columns.get("quarantined")))
    odd = make(data={"a": 1}, **columns)
    other = make(data={"a": 2}, quarantined=bool(columns.get("quarantined")))
    worker.work()
    assert {job.id for job in archived()} == {odd, other}


@pytest.mark.parametrize("crashes", [0, 2**31 - 1])
def test_jobs_of_a_dead_worker_wait_for_no_follower(
    worker: HandDriven, own: OwnConnection, other: OwnConnection, crashes: int
) -> None:
    led = make(jobs.write_once.name, followers={"on_complete": [FOLLOWER]})
    rest = {make(crashes=crashes) for _ in range(3)}
    worker.claim()
    recovery = JobRecovery([worker.worker.id], crashed=True, reason="it died")
    with open_transaction(other) as transaction_:
        transaction_.run(HOLD_KEY % "failed")
        recovery.run(own)
        assert {job.id for job in recovery.taken} == rest
        assert set(recovery.refused) == {led}
    recovery.run(own)
    assert {job.id for job in recovery.taken} == rest | {led}


def test_jobs_that_expire_wait_for_no_follower(
    own: OwnConnection, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("django_jobqueue.host.maintenance.expirer.LOCKED_AFTER", 0.0)
    led = make(followers={"on_complete": [FOLLOWER]}, expires_at=ago(10))
    rest = {make(expires_at=ago(1)) for _ in range(5)}
    expirer = Expirer(own, DeadlineWatch(own, WorkerConfig(threads=1)))
    with open_transaction(other) as transaction_:
        transaction_.run(HOLD_KEY % "expired")
        expirer.tick()
        assert {job.id for job in archived(status="expired")} == rest
    eventually(lambda: (_look_anew(expirer), led in {j.id for j in archived()})[1])


def _look_anew(expirer: Expirer) -> None:
    expirer._deadlines.read_at = -1e9
    expirer.tick()


def test_only_the_worker_whose_row_is_locked_loses_its_lease(
    make_worker: Make, own: OwnConnection, other: OwnConnection
) -> None:
    first, second = make_worker().worker.id, make_worker().worker.id
    process_table = ProcessTable(2)
    for number, id in enumerate((first, second)):
        process_table.write(number, pid=number + 1, worker=id, renewable=1, held=1)
    renewer = Renewer(process_table, own)
    renewer.tick()
    before = process_table.renewed_at = lease_time() - conf.lease * 0.8
    process_table.write(0, calls=1)  # so that it is due again
    with open_transaction(other) as transaction_:
        transaction_.fetch(f"SELECT FROM jobqueue_worker WHERE id = {first} FOR UPDATE")
        renewer.tick()
        assert renewer.tick() <= 1.0, "it is tried again soon"
        later = before + conf.lease * 0.9
        overdue = [
            s.is_cut_off(process_table.renewed_at, later, conf.lease)
            for s in process_table
        ]
        assert overdue == [True, False]
        assert not any(entry.lost for entry in process_table)
    renewer.tick()
    overdue = [
        s.is_cut_off(process_table.renewed_at, later, conf.lease) for s in process_table
    ]
    assert overdue == [False, False]


@pytest.mark.parametrize("undone", [False, True], ids=["committed", "rolled back"])
def test_who_asks_workers_in_a_transaction_locks_no_row(
    worker: HandDriven, own: OwnConnection, undone: bool
) -> None:
    id = worker.worker.id
    lock = f"SELECT FROM jobqueue_worker WHERE id = {id} FOR UPDATE NOWAIT"
    with transaction.atomic():
        assert operations.ask_workers([id, id + 1_000], "drain") == [id]
        assert operations.request_stack_dumps(id) == [id]
        own.fetch(lock)
        transaction.set_rollback(undone)
    row = Worker.objects.get()
    assert row.desired == ("" if undone else "drain")
    assert (row.request is None) is undone


def test_a_job_expires_by_the_clock_of_its_claim_however_late_that_is_answered(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(data={"a": 1}, expires_at=ago(-0.5))
    claimer = worker.worker.dispatcher.claimer
    claim_lanes = claimer._claim_lanes

    def claim_late(statement: Callable[..., list[object]], *args: object) -> object:
        def late(*given: object) -> list[object]:
            found = statement(*given)
            time.sleep(0.6)  # as a commit that waits
            return found

        return claim_lanes(late, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(claimer, "_claim_lanes", claim_late)
    worker.claim()
    worker.run()
    worker.finish()
    assert [(job.id, job.status) for job in archived()] == [(made, "expired")]


def test_a_search_for_what_is_locked_ends_and_tries_the_largest_parts_first(
    own: OwnConnection, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_batches, "SEARCH", 0.3)
    monkeypatch.setattr(partial_batches, "BRIEF", 0.05)
    ids = [make() for _ in range(64)]
    done: list[UUID] = []

    def take(part: list[UUID]) -> None:
        own.fetch(
            "SELECT FROM jobqueue_queuedjob WHERE id = ANY(%(ids)s) FOR UPDATE",
            {"ids": part},
        )
        done.extend(part)

    with open_transaction(other) as transaction_:
        transaction_.fetch(
            "SELECT FROM jobqueue_queuedjob WHERE id = ANY(%(ids)s) FOR UPDATE",
            {"ids": ids[:32]},
        )
        left = each_it_can(own, ids, take, brief=True)
        assert sorted(done) == sorted(ids[32:])
        assert sorted(id for part in left for id in part.items) == sorted(ids[:32])
        assert len(left) < 32
        assert all(part.is_locked for part in left)
    assert own.fetch("SHOW lock_timeout") == [("2s",)]
    assert isinstance(left[0].error, psycopg.errors.LockNotAvailable)
    assert DjangoDatabase().fetch("SELECT 1") == [(1,)]
