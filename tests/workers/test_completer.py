"""Outcomes on their way to the database."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from django_jobqueue import operations
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    FailureRollup,
    QueuedJob,
    Rollup,
)
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.rescue import rescue
from django_jobqueue.workers.completing.completer import (
    CLOSE_AFTER,
    LONGEST_GATHER,
    SHORTEST_GATHER,
)
from django_jobqueue.workers.completing.deferred_outcomes import FIRST_WAIT
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.waiting import eventually

Make = Callable[..., HandDriven]

CONNECTIONS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'jobqueue completer'
"""

COMPLETER = "django_jobqueue.workers.completing.completer"


def test_with_nothing_to_write_it_rests(worker: HandDriven) -> None:
    assert worker.worker.completer.tick() == FOREVER


def test_its_connection_is_let_go_when_nothing_was_to_be_written_for_long(
    worker: HandDriven, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connections() -> int:
        return len(own.fetch(CONNECTIONS))

    completer = worker.worker.completer
    monkeypatch.setattr(f"{COMPLETER}.COUNTERS_EVERY", 0.0)
    jobs.add.enqueue(1)
    worker.work()
    assert 0 < completer.tick() <= CLOSE_AFTER
    assert connections() == 1
    monkeypatch.setattr("django_jobqueue.workers.completing.completer.CLOSE_AFTER", 0.0)
    assert completer.tick() == FOREVER
    eventually(lambda: connections() == 0)
    jobs.add.enqueue(2)
    worker.work()
    assert len(archived(status="succeeded")) == 2


@pytest.mark.parametrize(
    ("took", "gathers"),
    [(0.001, SHORTEST_GATHER), (0.02, 0.02), (5.0, LONGEST_GATHER)],
)
def test_a_burst_gathers_for_as_long_as_the_last_write_took(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch, took: float, gathers: float
) -> None:
    completer, now, waits = worker.worker.completer, [1_000.0], list[float]()
    completer._more_will_end = lambda: True
    monkeypatch.setattr(completer._full, "wait", waits.append)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    write = completer._write_batch

    def write_slowly(*batch: Any) -> None:
        write(*batch)
        if batch[1]:
            now[0] += took

    monkeypatch.setattr(completer, "_write_batch", write_slowly)
    for number in range(2):
        jobs.add.enqueue(number)
        worker.claim()
        worker.run()
        worker.finish()
    assert waits == [SHORTEST_GATHER, pytest.approx(gathers)]
    assert len(archived()) == 2


def test_each_of_the_four_words_does_what_it_says(worker: HandDriven) -> None:
    for word in ("retry", "snooze", "fail", "cancel"):
        jobs.say.enqueue(word)
    worker.claim()
    worker.run()
    worker.finish()

    over = {job.status: job for job in archived()}
    assert set(over) == {"failed", "cancelled"}
    assert over["failed"].error_message == "hopeless"
    assert over["cancelled"].error_message == "not wanted"
    waiting = {job.data["word"]: job for job in queued()}
    assert waiting["retry"].attempts == 1
    assert waiting["snooze"].attempts == 0
    for job in waiting.values():
        assert job.status == "queued"
        assert 50 < (job.run_after - job.created_at).total_seconds() < 70
    assert {failure.end for failure in Failure.objects.all()} == {
        "failed",
        "snoozed",
        "cancelled",
    }


def test_a_failure_is_recorded_with_everything(worker: HandDriven) -> None:
    made = jobs.fail.enqueue(message="no order 17")
    worker.work()
    first, second, third = Failure.objects.order_by("number")
    assert [first.number, second.number, third.number] == [1, 2, 3]
    assert (first.job_id, first.job_type) == (made.id, "tests.sample.fail")
    assert (first.error_class, first.error_message) == ("ValueError", "no order 17")
    assert "raise ValueError(message)" in first.traceback
    assert first.frames[-1]["function"] == "fail"
    assert first.frames[-1]["project"]
    assert first.worker == worker.worker.name
    assert first.release == "tests"
    assert first.reason == ""
    assert third.reason == "no attempt is left"
    group = FailureGroup.objects.get()
    assert {first.fingerprint, third.fingerprint} == {group.fingerprint}
    assert (group.template, group.frame) == ("no order <n>", "tests.sample.jobs:fail")
    assert archived()[0].fingerprint == group.fingerprint


def test_a_resolved_failure_that_comes_again_is_a_regression(
    worker: HandDriven,
) -> None:
    jobs.fail.enqueue(message="x")
    worker.work()
    FailureGroup.objects.update(state="resolved")
    jobs.fail.enqueue(message="x")
    worker.work()
    group = FailureGroup.objects.get()
    assert group.state == "open"
    assert group.regressed_at is not None


def test_the_outcome_of_a_rescued_job_changes_nothing(
    worker: HandDriven, own: OwnConnection
) -> None:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    rescue(own, [worker.worker.id], crashed=True, reason="taken for dead")
    worker.finish()
    (job,) = queued()
    assert (job.status, job.crashes, job.attempts) == ("queued", 1, 0)
    assert archived() == []
    assert worker.worker.completer.is_done
    assert not worker.worker.held


def test_an_outcome_is_kept_until_the_database_is_back(
    worker: HandDriven, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    own.run("ALTER TABLE jobqueue_archivedjob RENAME TO jobqueue_hidden")
    try:
        with pytest.raises(StoreUnavailable, match="run manage.py migrate"):
            worker.finish()
    finally:
        own.run("ALTER TABLE jobqueue_hidden RENAME TO jobqueue_archivedjob")
    assert not worker.worker.completer.is_done
    worker.finish()
    assert [job.status for job in archived()] == ["succeeded"]


def test_a_result_that_the_database_cannot_keep_is_noted_and_the_job_succeeded(
    worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    """Two jobs end in one batch; one result is too deep for PostgreSQL's parser."""
    good, bad = jobs.add.enqueue(1), jobs.add.enqueue(2)
    worker.claim()
    worker.run()
    for attempt, finished in worker.worker.completer._gathered:
        if attempt.job.id == bad.id:
            object.__setattr__(finished.outcome, "result", "[" * 100_000)
    worker.finish()
    over = {job.id: job for job in archived()}
    assert over[good.id].result == 1
    assert over[bad.id].status == "succeeded"
    assert (
        over[bad.id].result["not_kept"].startswith("the database refused the result: ")
    )
    assert caplog.text.count("it is recorded without its content") == 1


REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'not today'; END $$;
CREATE TRIGGER refuse BEFORE DELETE OR UPDATE ON jobqueue_queuedjob FOR EACH ROW
  WHEN (OLD.job_type = 'tests.sample.fail' AND OLD.status = 'running')
  EXECUTE FUNCTION refuse()
"""
ACCEPT = "DROP TRIGGER refuse ON jobqueue_queuedjob; DROP FUNCTION refuse"


@contextmanager
def refusing(own: OwnConnection) -> Iterator[None]:
    """The database refuses the outcomes of one job type meanwhile."""
    with own.raw() as raw:
        raw.execute(REFUSE, prepare=False)
    try:
        yield
    finally:
        with own.raw() as raw:
            raw.execute(ACCEPT, prepare=False)


@pytest.mark.parametrize("last", [True, False], ids=["last attempt", "to be retried"])
def test_an_outcome_that_is_refused_waits_and_holds_up_no_other(
    worker: HandDriven,
    own: OwnConnection,
    last: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    fail = jobs.fail.using(max_attempts=1 if last else 3)
    bad = [fail.enqueue() for _ in range(3)]
    good = [jobs.add.enqueue(n) for n in range(20)]
    with refusing(own):
        for _ in range(8):
            worker.claim()
            worker.run()
            worker.finish()
        assert {job.id for job in archived()} == {job.id for job in good}
        assert [job.status for job in queued()] == ["running"] * 3
        assert not worker.worker.is_empty, "they are still its jobs"
        assert not worker.worker.completer.is_done
        assert 0 < worker.worker.completer.tick() <= FIRST_WAIT
    said = [r.getMessage() for r in caplog.records if "refuses outcomes" in r.msg]
    assert said == [
        "The database refuses outcomes of tests.sample.fail (1 waiting), will retry: "
        "RaiseException: not today"
    ]
    eventually(lambda: (worker.worker.completer.tick(), worker.worker.is_empty)[1])
    if not last:
        assert [job.attempts for job in queued()] == [1, 1, 1]
        worker.work()
    over = {job.id: (job.status, job.error_message) for job in archived()}
    assert {over[job.id] for job in bad} == {("failed", "no")}
    assert "accepts outcomes of tests.sample.fail again" in caplog.text


def test_a_refused_success_is_archived_as_what_it_was(
    worker: HandDriven, own: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose row PostgreSQL quotes; the log does not."""
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    own.run(
        "ALTER TABLE jobqueue_archivedjob "
        "ADD CONSTRAINT no CHECK (id IS NULL) NOT VALID"
    )
    try:
        for _ in range(3):
            worker.finish()
        assert archived() == []
    finally:
        own.run("ALTER TABLE jobqueue_archivedjob DROP CONSTRAINT no")
    eventually(lambda: (worker.worker.completer.tick(), worker.worker.is_empty)[1])
    assert [(job.status, job.result) for job in archived()] == [("succeeded", 1)]
    assert "CheckViolation" in caplog.text
    assert "Failing row" not in caplog.text
    assert not Failure.objects.exists()


def test_a_type_whose_outcomes_are_refused_is_not_claimed_without_end(
    make_worker: Make, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "django_jobqueue.workers.completing.deferred_outcomes.MOST_OF_TYPE", 5
    )
    worker = make_worker(threads=4)
    jobs.fail.using(max_attempts=1).enqueue_many([{}] * 30)
    with refusing(own):
        for _ in range(10):
            worker.claim()
            worker.run()
            worker.finish()
        assert 5 <= len(worker.worker.held) <= 9
        jobs.add.enqueue(1)
        worker.claim()
        worker.run()
        worker.finish()
        assert len(archived()) == 1, "others go on"
    eventually(lambda: (worker.worker.completer.tick(), worker.worker.is_empty)[1])
    worker.work()
    assert len(archived(status="failed")) == 30


def test_a_row_that_somebody_has_locked_holds_up_no_other(
    worker: HandDriven, own: OwnConnection
) -> None:
    locked = jobs.add.enqueue(0)
    others = [jobs.add.enqueue(n) for n in (1, 2)]
    worker.claim()
    worker.run()
    with open_transaction(own) as db:
        db.fetch(
            "SELECT id FROM jobqueue_queuedjob WHERE id = %(id)s FOR UPDATE",
            {"id": locked.id},
        )
        worker.finish()
        assert {job.id for job in archived()} == {job.id for job in others}
    eventually(lambda: (worker.worker.completer.tick(), worker.worker.is_empty)[1])
    assert len(archived(status="succeeded")) == 3


@pytest.mark.parametrize("how", ["refused", "away"])
def test_counts_that_cannot_be_written_hold_up_no_outcome(
    worker: HandDriven, own: OwnConnection, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{COMPLETER}.COUNTERS_EVERY", 0.0)
    change = {
        "refused": "ALTER TABLE jobqueue_rollup ADD CONSTRAINT no CHECK (queue = '')",
        "away": "ALTER TABLE jobqueue_rollup RENAME TO jobqueue_hidden",
    }[how]
    back = {
        "refused": "ALTER TABLE jobqueue_rollup DROP CONSTRAINT no",
        "away": "ALTER TABLE jobqueue_hidden RENAME TO jobqueue_rollup",
    }[how]
    own.run(change)
    try:
        for n in range(3):
            jobs.add.enqueue(n)
            worker.work()
    finally:
        own.run(back)
    assert len(archived(status="succeeded")) == 3
    jobs.add.enqueue(3)
    worker.work()
    worker.worker.completer.write_counters()
    counted = sum(Rollup.objects.values_list("succeeded", flat=True))
    assert counted == (1 if how == "refused" else 4)


def test_what_cannot_be_written_until_the_end_is_told(
    worker: HandDriven, own: OwnConnection, caplog: pytest.LogCaptureFixture
) -> None:
    jobs.fail.using(max_attempts=1).enqueue()
    with refusing(own):
        worker.claim()
        worker.run()
        worker.finish()
        worker.worker.completer.close()
    assert "Could not record the outcome of finished jobs (1)" in caplog.text


def test_a_success_whose_id_is_archived_already_holds_nothing_up(
    worker: HandDriven,
) -> None:
    """Somebody used an id again, by plain SQL: the archive stays as it was."""
    good, bad = jobs.add.enqueue(1), jobs.add.enqueue(2)
    ArchivedJob.objects.create(id=bad.id, job_type_id=bad.job_type, status="cancelled")
    worker.work()
    statuses = {job.id: job.status for job in archived()}
    assert statuses == {good.id: "succeeded", bad.id: "cancelled"}
    assert queued() == []


def test_attempts_are_counted_in_the_roll_up(worker: HandDriven) -> None:
    for number in range(3):
        jobs.add.enqueue(number)
    jobs.fail.enqueue()
    worker.work()
    worker.worker.completer.write_counters()
    counts = {
        rollup.job_type: (rollup.succeeded, rollup.failed, rollup.retried)
        for rollup in Rollup.objects.all()
    }
    assert counts == {"tests.sample.add": (3, 0, 0), "tests.sample.fail": (0, 1, 2)}
    rollup = Rollup.objects.get(job_type="tests.sample.add")
    assert sum(rollup.run_histogram) == sum(rollup.wait_histogram) == 3


def test_failures_are_counted_by_their_fingerprint(worker: HandDriven) -> None:
    jobs.fail.enqueue(message="no order 1")
    jobs.fail.enqueue(message="no order 2")
    jobs.fail.enqueue(message="no customer")
    worker.work()
    worker.worker.completer.close()
    templates = dict(FailureGroup.objects.values_list("fingerprint", "template"))
    counts = {
        templates[rollup.fingerprint]: (rollup.failed, rollup.retried)
        for rollup in FailureRollup.objects.all()
    }
    assert counts == {"no order <n>": (2, 4), "no customer": (1, 2)}


def test_a_worker_that_is_never_idle_adds_to_the_roll_ups(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.fail.enqueue()
    worker.claim()
    worker.run()
    monkeypatch.setattr(f"{COMPLETER}.COUNTERS_EVERY", 0.0)
    worker.finish()
    assert Rollup.objects.get().retried == 1
    assert FailureRollup.objects.get().retried == 1


def test_counts_that_cannot_be_written_are_kept(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.fail.enqueue()
    worker.work()

    def refuse(*arguments: object) -> None:
        raise StoreUnavailable("away", retry_in=1.0)

    with monkeypatch.context() as patch:
        patch.setattr("django_jobqueue.store.failure_rollup.add", refuse)
        worker.worker.completer.write_counters()
    assert not FailureRollup.objects.exists()
    worker.worker.completer.write_counters()
    assert FailureRollup.objects.get().failed == 1
    assert Rollup.objects.get().failed == 1


def test_a_job_cancelled_while_it_fails_is_not_retried(
    worker: HandDriven,
) -> None:
    made = jobs.fail.enqueue()
    worker.claim()
    worker.run()
    operations.cancel([made.id])
    worker.finish()
    (job,) = archived()
    assert (job.status, job.attempts) == ("cancelled", 1)
    assert QueuedJob.objects.count() == 0


def test_a_large_result_is_replaced_by_its_size(worker: HandDriven) -> None:
    jobs.return_much.enqueue(100_000)
    jobs.return_object.enqueue()
    worker.work()
    by_type = {job.job_type_id: job for job in archived()}
    kept = by_type["tests.sample.return_much"]
    assert kept.result == {"not_kept": "result of 100,002 bytes; only 65,536 are kept"}
    refused = by_type["tests.sample.return_object"]
    assert (refused.status, refused.attempts) == ("failed", 1)
    assert refused.error_message.startswith("result is an object, which JSON does not")


def test_nothing_of_a_result_is_kept_when_there_is_none(worker: HandDriven) -> None:
    jobs.write.enqueue("/dev/null")
    worker.work()
    (job,) = archived()
    assert job.result is None
    assert job.wait_ms >= 0
    assert job.run_ms >= 0
    assert job.started_at <= job.finished_at
