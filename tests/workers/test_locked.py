"""What others have locked keeps only what needs it: one item, one type, one worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import psycopg
import pytest
from django.db import transaction
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.conf import conf
from django_jobqueue.host.maintenance.dead_worker_recovery import JobRecovery
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.renewer import Renewer
from django_jobqueue.models import FailureGroup, QueuedJob, Worker
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import partial_batches, session
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.partial_batches import apply_in_parts
from django_jobqueue.store.queue import claim as claim_store
from django_jobqueue.workers.claiming import claimer
from django_jobqueue.workers.completing import deferred_outcomes
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.store.rows import LIMITED, ago, make, make_many
from tests.support.hand_driven import HandDriven, Make
from tests.support.refusing import refusing
from tests.support.rows import archived, queued
from tests.support.selection import some_slow
from tests.support.waiting import eventually

FOLLOWER: Final = "tests.sample.follow_with_options"  # unique by its status
HOLD_KEY: Final = f"""
INSERT INTO jobqueue_queuedjob (job_type, data)
VALUES ('{FOLLOWER}', '{{"job": "x", "status": "%s"}}')
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks are waited for a fifth as long as always, and what waits is soon tried
    again."""
    lock_timeout = session.lock_timeout
    monkeypatch.setattr(session, "lock_timeout", lambda s: lock_timeout(s / 5))
    monkeypatch.setattr(deferred_outcomes, "FIRST_WAIT", 0.05)
    monkeypatch.setattr(claimer, "RECHECK_FIRST", 0.05)


def failing(count: int) -> set[UUID]:
    """So many jobs whose only attempt will fail."""
    return {jobs.fail.using(max_attempts=1).enqueue().id for _ in range(count)}


def a_row() -> tuple[set[UUID], str]:
    """The ids of jobs that cannot end while somebody has done this."""
    statement = "SELECT FROM jobqueue_queuedjob WHERE data -> 'a' = '99' FOR UPDATE"
    return {jobs.add.enqueue(99).id}, statement


def a_group() -> tuple[set[UUID], str]:
    FailureGroup.objects.update(state="resolved")
    return failing(3), "UPDATE jobqueue_failuregroup SET state = 'resolved'"


def a_new_group() -> tuple[set[UUID], str]:
    group = FailureGroup.objects.get()
    FailureGroup.objects.all().delete()
    return failing(3), (
        "INSERT INTO jobqueue_failuregroup "
        "(fingerprint, coarse, error_class, frame, template) "
        f"VALUES ('{group.fingerprint}', '{group.coarse}', '', '', '')"
    )


def a_key_of_a_follower() -> tuple[set[UUID], str]:
    ids = {jobs.add.enqueue(n).id for n in range(2)}
    QueuedJob.objects.filter(id__in=ids).update(followers={"on_complete": [FOLLOWER]})
    return ids, HOLD_KEY % "succeeded"


@pytest.mark.parametrize(
    "lock",
    some_slow([a_row, a_group, a_new_group, a_key_of_a_follower], [a_row, a_new_group]),
)
def test_outcomes_that_need_a_lock_of_others_hold_up_no_other(
    make_worker: Make, own: OwnConnection, lock: Callable[[], tuple[set[UUID], str]]
) -> None:
    worker = make_worker(threads=8)
    failing(1)  # so that there is a group
    worker.work()
    before = {job.id for job in archived()}
    waiting, statement = lock()
    with open_transaction(own) as transaction_:
        others = {jobs.add.enqueue(n).id for n in range(20)}
        worker.claim()
        transaction_.run(statement)
        for _ in range(5):
            worker.complete()
            worker.claim()
        assert {job.id for job in archived()} - before == others
        assert not worker.worker.is_empty

        # The same while it is known, and at an end that has no time to wait.
        late = {jobs.add.enqueue(n).id for n in range(5)}
        worker.claim(told=True)
        worker.run()
        worker.completer.close()
        assert {job.id for job in archived()} - before == others | late
    eventually(lambda: (worker.finish(), worker.worker.is_empty)[1])
    over = {job.id: job.status for job in archived()}
    assert waiting <= over.keys()
    assert {over[id] for id in waiting} <= {"succeeded", "failed"}


@pytest.mark.parametrize(
    "claimed_alone", [False, True], ids=["ordinary", "in quarantine"]
)
def test_a_job_type_that_is_locked_keeps_no_other_from_being_claimed(
    make_worker: Make, own: OwnConnection, claimed_alone: bool
) -> None:
    worker = make_worker(quarantined=claimed_alone)
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
        worker.complete()
    worker.dispatcher.policies_changed()  # as its commit notifies
    worker.work()
    assert {job.id for job in archived()} == {limited, other}


def test_its_locked_row_stops_no_worker(worker: HandDriven, own: OwnConnection) -> None:
    worker.get_notifications()
    with open_transaction(own) as transaction_:
        transaction_.fetch("SELECT FROM jobqueue_worker FOR UPDATE")
        for count in (1, 2):
            assert worker.claim() <= 1.0, "it polls, since nobody can notify it"
            jobs.add.enqueue(1)
            worker.turn(told=True)
            assert len(archived()) == count


def test_releases_wait_for_no_lock(worker: HandDriven, own: OwnConnection) -> None:
    locked, *others = [make(data={"a": n}) for n in range(4)]
    claims = worker.dispatcher.claimer
    worker.claim()
    with open_transaction(own) as transaction_:
        transaction_.fetch(
            f"SELECT FROM jobqueue_queuedjob WHERE id = '{locked}' FOR UPDATE"
        )
        claims.give_back(list(worker.worker.held))
        claims.release_unconfirmed()
        assert {job.id for job in queued(status="queued")} == set(others)
        assert 0 < claims.unconfirmed.seconds_until_due <= 1.0
    eventually(
        lambda: (claims.release_unconfirmed(), queued(id=locked, status="queued"))[1]
    )


def test_a_type_whose_claims_are_refused_keeps_no_other_from_being_claimed(
    worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    refused = make(jobs.fail.name, priority=50)
    others = [make(data={"a": 1}), make(LIMITED, data={"journal": "/dev/null"})]
    with refusing(jobs.fail.name, "UPDATE", "NEW.status = 'running'"):
        worker.claim()
        assert {a.job.id for a in worker.worker.held} == set(others)
        assert "No jobs of tests.sample.fail can be claimed for now" in caplog.text
    worker.dispatcher.policies_changed()
    worker.work()
    assert refused in {job.id for job in archived()}


def test_a_row_with_the_greatest_numbers_stops_no_other(make_worker: Make) -> None:
    small, large = {"attempts": 2**31 - 1}, {"fence": 2**63 - 1}
    rows = [small, large, {"crashes": 2**31 - 1}, {}]
    made = {make(data={"a": 1}, **columns) for columns in rows}
    alone = {make(quarantined=True, **columns) for columns in ({**small, **large}, {})}
    make_worker().work()
    assert {job.id for job in archived()} == made
    make_worker(quarantined=True).work()
    assert {job.id for job in archived()} == made | alone


def test_jobs_of_a_dead_worker_wait_for_no_follower(
    worker: HandDriven, own: OwnConnection, other: OwnConnection
) -> None:
    led = make(jobs.write_once.name, followers={"on_complete": [FOLLOWER]})
    rest = {make(crashes=crashes) for crashes in (0, 0, 2**31 - 1)}
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
    deadlines = DeadlineWatch(own, WorkerConfig(threads=1))
    expirer = Expirer(own, deadlines)

    def expired() -> set[UUID]:
        deadlines.read_at = -1e9  # so it looks again
        expirer.tick()
        return {job.id for job in archived(status="expired")}

    with open_transaction(other) as transaction_:
        transaction_.run(HOLD_KEY % "expired")
        assert expired() == rest
    eventually(lambda: led in expired())


def test_only_the_worker_whose_row_is_locked_loses_its_lease(
    make_worker: Make, own: OwnConnection, other: OwnConnection
) -> None:
    first, second = make_worker().worker.id, make_worker().worker.id
    process_table = ProcessTable(2)
    for number, id in enumerate((first, second)):
        process_table.write(number, pid=number + 1, worker=id, renewable=1, held=1)

    def overdue(now: float) -> list[bool]:
        renewed_at = process_table.renewed_at
        return [s.is_cut_off(renewed_at, now, conf.lease) for s in process_table]

    renewer = Renewer(process_table, own)
    renewer.tick()
    before = process_table.renewed_at = lease_time() - conf.lease * 0.8
    process_table.write(0, calls=1)  # so that it is due again
    with open_transaction(other) as transaction_:
        transaction_.fetch(f"SELECT FROM jobqueue_worker WHERE id = {first} FOR UPDATE")
        renewer.tick()
        assert renewer.tick() <= 1.0, "it is tried again soon"
        assert overdue(before + conf.lease * 0.9) == [True, False]
        assert not any(entry.lost for entry in process_table)
    renewer.tick()
    assert overdue(before + conf.lease * 0.9) == [False, False]


def test_who_asks_workers_locks_no_row(worker: HandDriven, own: OwnConnection) -> None:
    id = worker.worker.id
    lock = f"SELECT FROM jobqueue_worker WHERE id = {id} FOR UPDATE NOWAIT"
    for undone, desired in ((True, ""), (False, "drain")):
        with transaction.atomic():
            assert operations.ask_workers([id, id + 1_000], "drain") == [id]
            assert operations.request_stack_dumps(id) == [id]
            own.fetch(lock)
            transaction.set_rollback(undone)
        row = Worker.objects.get()
        assert (row.desired, row.request is None) == (desired, undone)


def test_a_job_expires_by_the_clock_of_its_claim_however_late_that_is_answered(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_at = ago(-0.5)
    made = make(data={"a": 1}, expires_at=expires_at)
    claim = claim_store.claim

    def claim_late(*given: Any) -> Any:
        found = claim(*given)
        if found:  # as a commit that waits
            eventually(lambda: timezone.now() > expires_at)
        return found

    monkeypatch.setattr(claim_store, "claim", claim_late)
    worker.turn()
    assert [(job.id, job.status) for job in archived()] == [(made, "expired")]


def test_a_search_for_what_is_locked_ends_and_tries_the_largest_parts_first(
    own: OwnConnection, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_batches, "SEARCH", 0.2)
    ids = make_many(32)
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
            {"ids": ids[:16]},
        )
        left = apply_in_parts(own, ids, take, brief=True)
        assert sorted(done) == sorted(ids[16:])
        assert sorted(id for part in left for id in part.items) == sorted(ids[:16])
        assert len(left) < 16
        assert all(part.is_locked for part in left)
    assert own.fetch("SHOW lock_timeout") == [("400ms",)]  # as always, here
    assert isinstance(left[0].error, psycopg.errors.LockNotAvailable)
    assert DjangoDatabase().fetch("SELECT 1") == [(1,)]
