"""What is told of jobs whose worker is gone: by the log, by signals, in the roll-ups.

Each job once, whoever takes it and whatever goes wrong meanwhile.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from django_jobqueue import operations
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.lost_attempts import NAMED
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    FailureRollup,
    QueuedJob,
    Rollup,
    Worker,
)
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import rescue
from tests.host.lost import Told, commits, held_by, lines, rescuer_on
from tests.pairwise import pairwise
from tests.store.meanwhile import open_transaction
from tests.store.rows import ADD, ONCE, ago, make_many, register
from tests.support.refusing import refusing
from tests.support.rows import archived, counted, queued
from tests.support.selection import some_slow

pytestmark = pytest.mark.django_db(transaction=True)

KILLED = "killed by signal 9 (SIGKILL)"
WAYS = ("killed", "stopped", "lapsed", "stray", "released by hand")


def die(rescuer: Rescuer, worker: int, way: str, reason: str = KILLED) -> None:
    """Let the worker be lost in this way, and its jobs be taken from it."""
    if way in ("killed", "stopped"):
        rescuer.report(ProcessDeath(worker, "host:1", way == "killed", reason))
    elif way == "lapsed":
        Worker.objects.filter(id=worker).update(lease_until=ago(1))
    else:
        Worker.objects.filter(id=worker).delete()
    if way == "released by hand":
        operations.release(
            list(QueuedJob.objects.values_list("id", flat=True)), by="anna"
        )
    rescuer.tick()


CASES = pairwise(
    {"way": WAYS, **dict.fromkeys(("once", "cancelled", "at_its_cap"), (False, True))}
)


@pytest.mark.parametrize(
    ("way", "once", "cancelled", "at_its_cap"),
    some_slow(
        product(WAYS, *[(False, True)] * 3),
        [tuple(case.values()) for case in CASES],
        "further combinations",
    ),
)
def test_each_job_is_told_once_and_as_what_it_is(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    caplog: pytest.LogCaptureFixture,
    way: str,
    once: bool,
    cancelled: bool,
    at_its_cap: bool,
) -> None:
    caplog.set_level(logging.INFO, "django_jobqueue")
    crashed, job_type = way != "stopped", ONCE if once else ADD
    failed = once or (crashed and at_its_cap and not cancelled)
    status = "failed" if failed else "cancelled" if cancelled else "queued"
    cancel = {"cancel_requested_at": ago(1) if cancelled else None}
    id = held_by(holder, job_type, queue="q", crashes=2 * at_its_cap, **cancel)

    die(rescuer, holder, way)
    rescuer.tick()

    ended = {"failed": ["job_failed"], "cancelled": ["job_cancelled"], "queued": []}
    assert [one.name for one in told()] == ["job_rescued", *ended[status]]
    assert {one.id for one in told()} == {id}
    assert told()[0].arguments["status"] == status
    (line,) = lines(caplog)
    said = (line.job_id, line.job_type, line.attempt)
    assert said == (str(id), job_type, 1)
    warned = logging.WARNING if crashed else logging.INFO
    levels = {"failed": logging.ERROR, "cancelled": logging.INFO, "queued": warned}
    assert line.levelno == levels[status]
    counted = Rollup.objects.get()
    assert (counted.job_type, counted.queue) == (job_type, "q")
    kind = "failed" if failed else "retried" if crashed and not cancelled else "other"
    for name in ("succeeded", "failed", "retried", "other"):
        assert getattr(counted, name) == (name == kind), name
    assert 3_000 <= counted.run_ms < 60_000
    assert 1_900 <= counted.wait_ms < 2_100
    assert sum(counted.run_histogram) == sum(counted.wait_histogram) == 1
    is_failure = crashed or once
    assert FailureGroup.objects.count() == is_failure
    assert FailureRollup.objects.count() == is_failure
    (kept,) = Failure.objects.all()
    assert (kept.fingerprint is not None) == is_failure
    assert kept.end == (
        "crashed" if crashed else status if failed or cancelled else "released"
    )


def test_signal_and_log_of_a_poison_job_say_why_it_has_failed(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    id = held_by(holder, crashes=2)
    die(rescuer, holder, "killed", "odd\nreason \x1b[31m")

    arguments = told()[-1].arguments
    outcome = arguments.pop("outcome")
    assert isinstance(outcome, Outcome)
    assert (outcome.verb, outcome.reason) == (Verb.FAIL, "crash 3 of 3")
    assert outcome.failure.error_class == "jobqueue.WorkerLost"
    assert outcome.failure.message.startswith("odd\nreason")
    (group,) = FailureGroup.objects.all()
    assert outcome.failure.fingerprint.value == group.fingerprint
    assert arguments.pop("seconds") >= 3
    assert arguments == {"job_type": ADD, "id": id, "attempt": 1}
    (line,) = lines(caplog)
    said = line.getMessage()
    assert said.startswith(
        f"Job {id} ({ADD}) attempt 1 failed for good (crash 3 of 3) after 3."
    )
    assert said.endswith(r" s: odd\nreason \x1b[31m")


def test_of_thousands_the_log_names_the_worst_and_counts_the_others(
    rescuer: Rescuer, holder: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "django_jobqueue")
    running = {"status": "running", "worker_id": holder, "started_at": ago(1)}
    make_many(NAMED * 3, **running)
    poison = {str(held_by(holder, crashes=2)) for _ in range(3)}
    die(rescuer, holder, "killed")

    said = lines(caplog)
    assert [line.levelno for line in said[:4]] == [logging.ERROR] * 3 + [
        logging.WARNING
    ]
    assert {line.job_id for line in said[:3]} == poison
    assert len(said) == NAMED + 1
    assert said[-1].levelno == logging.WARNING
    rest = 3 * NAMED + 3 - NAMED
    assert f"Likewise for {rest} more jobs ({rest} queued)" in said[-1].getMessage()
    assert counted("retried") == 3 * NAMED


def test_a_stop_opens_no_failure_group(rescuer: Rescuer, own: OwnConnection) -> None:
    for way in ("killed", "stopped"):
        worker = register(own)
        QueuedJob.objects.all().delete()
        held_by(worker)
        die(rescuer, worker, way)
        FailureGroup.objects.update(state="resolved")
    assert FailureGroup.objects.get().state == "resolved"
    assert FailureRollup.objects.get().retried == 1
    kept = Failure.objects.latest("id")
    assert (kept.end, kept.error_class) == ("released", "jobqueue.WorkerStopped")


# What goes wrong meanwhile.


@pytest.mark.parametrize("arrive", [True, False])
@pytest.mark.parametrize("way", ["killed", "stopped", "lapsed", "stray"])
def test_a_job_is_told_once_also_if_the_answer_was_lost(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    arrive: bool,
) -> None:
    caplog.set_level(logging.INFO, "django_jobqueue.attempt")
    ids = {held_by(holder), held_by(holder, ONCE)}
    with commits(monkeypatch, arrive=arrive), pytest.raises(StoreUnavailable):
        die(rescuer, holder, way)
    assert QueuedJob.objects.filter(status="running").exists() != arrive
    assert told() == []
    for recovery in rescuer.recoveries:
        recovery.next_at = 0.0
    rescuer.next_strays_at = 0.0
    rescuer._patient_until = 0.0  # private: as in its fixture
    rescuer.tick()

    assert Counter(
        one.id for one in told() if one.name == "job_rescued"
    ) == dict.fromkeys(ids, 1)
    assert [one.name for one in told()].count("job_failed") == 1
    assert len(lines(caplog)) == 2
    assert sum(sum(row.run_histogram) for row in Rollup.objects.all()) == 2
    assert Failure.objects.count() == 2


def test_of_a_batch_that_was_lost_others_are_told_by_whoever_took_them(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Batches that were written before are not told again."""
    monkeypatch.setattr(rescue, "BATCH", 3)
    batch = "django_jobqueue.host.maintenance.dead_worker_recovery.BATCH"
    monkeypatch.setattr(batch, 3)
    ids = {held_by(holder) for _ in range(7)}
    rescuer.report(ProcessDeath(holder, "host:1", True, KILLED))
    (recovery,) = rescuer.recoveries
    jobs, calls = recovery.recovery, 0
    take = jobs._take  # private: one batch

    def fail_at_the_second(*given: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == 2:
            with commits(monkeypatch, arrive=True):
                return take(*given)
        return take(*given)

    monkeypatch.setattr(jobs, "_take", fail_at_the_second)  # private: likewise
    with pytest.raises(StoreUnavailable):
        rescuer.tick()
    recovery.next_at = 0.0
    rescuer.tick()
    assert Counter(one.id for one in told()) == dict.fromkeys(ids, 1)
    assert Worker.objects.get(id=holder).rescued == {"queued": 7}


def test_jobs_that_the_database_refuses_to_move_do_not_keep_others(
    rescuer: Rescuer, own: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = register(own), register(own, "host:2")
    refused = {held_by(first, ONCE), held_by(second, ONCE)}
    others = [held_by(worker) for worker in (first, first, first, second)]
    with refusing(ONCE):
        rescuer.report(ProcessDeath(first, "host:1", True, KILLED, 1))
        die(rescuer, second, "killed")

        assert rescuer.is_done
        assert {job.id for job in queued(status="queued")} == set(others)
        assert {job.id for job in queued(status="running")} == refused
        for _ in range(3):  # rounds
            rescuer.next_strays_at = 0.0
            rescuer.tick()
    named = [r for r in caplog.records if "cannot be taken" in r.getMessage()]
    assert len(named) == 2
    assert all("not today" in record.getMessage() for record in named)

    rescuer.next_strays_at = 0.0
    rescuer.tick()
    assert {job.id for job in archived()} == refused


def test_a_death_that_must_wait_keeps_no_other_one_waiting(
    own: OwnConnection, other: OwnConnection, rescuer: Rescuer
) -> None:
    """Somebody holds what the rescue of the first one needs; it is no outage, so also
    lapsed leases are seen."""
    own.run("SET lock_timeout = 50")
    first, second, lapsed = (register(own, f"host:{n}") for n in range(3))
    held_by(first)
    kept = [held_by(second), held_by(lapsed)]
    Worker.objects.filter(id=lapsed).update(lease_until=ago(1))
    with open_transaction(other) as transaction:
        transaction.run(
            "SELECT FROM jobqueue_worker WHERE id = %(id)s FOR UPDATE", {"id": first}
        )
        rescuer.report(ProcessDeath(first, "host:1", True, KILLED, 1))
        rescuer.report(ProcessDeath(second, "host:2", True, KILLED, 2))
        with pytest.raises(StoreUnavailable):
            rescuer.tick()
        rescuer.recoveries[0].next_at = time.monotonic() + 60
        rescuer.tick()
        assert {job.id for job in queued(status="queued")} >= {*kept}
        assert not rescuer.is_done
    (recovery,) = rescuer.recoveries
    recovery.next_at = 0.0
    rescuer.tick()
    assert rescuer.is_done
    assert not queued(status="running")


def test_it_says_up_to_which_death_all_are_looked_after(own: OwnConnection) -> None:
    said: list[int] = []
    made = rescuer_on(own, said)
    for number in (4, 5, 6):
        made.report(ProcessDeath(register(own), "host:1", True, KILLED, number))
    later = made.recoveries[1]
    later.next_at = time.monotonic() + 60
    made.tick()
    assert said == [4]
    later.next_at = 0.0
    made.tick()
    assert said == [4, 6]


def test_a_look_for_strays_that_fails_is_tried_again_no_sooner_than_another_one(
    own: OwnConnection, rescuer: Rescuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = 0

    def fail(db: OwnConnection) -> list[int]:
        nonlocal rounds
        rounds += 1
        raise psycopg.errors.InternalError("odd")

    monkeypatch.setattr(worker_rows, "strays", fail)
    for _ in range(20):
        rescuer.round()
    assert rounds == 1


def test_who_is_lost_is_told_though_its_jobs_cannot_be_taken_at_once(
    holder: int,
    rescuer: Rescuer,
    told: Callable[[], list[Told]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker counts as lost; its jobs are taken for the same reason, later."""
    id = held_by(holder, crashes=2)
    with commits(monkeypatch, arrive=False), pytest.raises(StoreUnavailable):
        die(rescuer, holder, "lapsed")
    assert Worker.objects.get(id=holder).state == "lost"
    rescuer.recoveries[0].next_at = 0.0
    rescuer.tick()
    assert told()[0].arguments["reason"].startswith("its lease lapsed")
    assert ArchivedJob.objects.get(id=id).error_message.startswith("its lease lapsed")


def test_a_death_is_told_to_be_looked_after_also_if_the_next_look_fails(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a drain would wait for it for good."""
    said: list[int] = []
    deadlines = DeadlineWatch(own, WorkerConfig())
    made = rescuer_on(own, said, deadlines=deadlines)
    made.tick()

    def fail(*given: Any, **more: Any) -> None:
        raise StoreUnavailable("cut off", retry_in=0)

    made.report(ProcessDeath(register(own), "host:1", True, KILLED, 1))
    with monkeypatch.context() as patch:
        patch.setattr(deadlines, "next_for", fail)
        with pytest.raises(StoreUnavailable):
            made.tick()
    assert said == []
    read_at = deadlines.read_at
    made.tick()
    assert said == [1]
    assert deadlines.read_at > read_at
    made.tick()
    assert said == [1]


def test_a_death_is_told_to_another_process_as_it_is() -> None:
    death = ProcessDeath(
        7, "host:1", True, KILLED, 3, True, (uuid4(), uuid4()), (uuid4(),)
    )
    assert ProcessDeath.of_json(json.loads(json.dumps(death.to_json()))) == death
