"""Outcomes on their way to the database."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest

from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.models import (
    ArchivedJob,
    Failure,
    FailureGroup,
    FailureRollup,
    Rollup,
)
from django_jobqueue.processes.loop import FOREVER
from django_jobqueue.store import failure_rollup, session
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import finish
from django_jobqueue.store.queue.rescue import rescue
from django_jobqueue.workers.completing import completer, deferred_outcomes
from django_jobqueue.workers.executors.base import Executor
from tests.execution.test_attempt import attempt_of
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.refusing import refusing
from tests.support.rows import archived, counted, queued
from tests.support.waiting import eventually
from tests.workers.stopped_clock import StoppedClock

LogCapture = pytest.LogCaptureFixture

CONNECTIONS = """
SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND application_name = 'jobqueue completer'
"""


@pytest.fixture(autouse=True)
def _tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was refused, or is locked, is not waited for as long as always."""
    lock_timeout = session.lock_timeout
    monkeypatch.setattr(session, "lock_timeout", lambda s: lock_timeout(s / 5))
    monkeypatch.setattr(deferred_outcomes, "FIRST_WAIT", 0.1)


def write_all(worker: HandDriven) -> None:
    eventually(lambda: (worker.finish(), worker.worker.is_empty)[1])


def test_its_connection_is_let_go_when_nothing_was_to_be_written_for_long(
    worker: HandDriven, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connections() -> int:
        return len(own.fetch(CONNECTIONS))

    assert worker.completer.tick() == FOREVER  # with nothing to write
    monkeypatch.setattr(completer, "COUNTERS_EVERY", 0.0)
    jobs.add.enqueue(1)
    worker.work()
    assert 0 < worker.completer.tick() <= completer.CLOSE_AFTER
    assert connections() == 1
    monkeypatch.setattr(completer, "CLOSE_AFTER", 0.0)
    assert worker.completer.tick() == FOREVER
    eventually(lambda: connections() == 0)
    jobs.add.enqueue(2)
    worker.work()
    assert len(archived(status="succeeded")) == 2


def test_a_burst_gathers_for_as_long_as_the_last_write_took(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, waits, succeed = StoppedClock(), list[float](), finish.succeed
    writes = iter((0.001, 0.02, 5.0, 0.0))  # seconds

    def write_slowly(*given: Any) -> Any:
        clock.now += next(writes)
        return succeed(*given)

    monkeypatch.setattr(Executor, "ends_soon", True)
    monkeypatch.setattr(finish, "succeed", write_slowly)
    monkeypatch.setattr(completer, "time", clock)
    # private: the wait itself
    monkeypatch.setattr(worker.completer._full, "wait", waits.append)
    for number in range(4):
        jobs.add.enqueue(number)
        worker.turn()
    shortest, longest = completer.SHORTEST_GATHER, completer.LONGEST_GATHER
    assert waits == [shortest, shortest, pytest.approx(0.02), longest]
    assert len(archived()) == 4


def test_each_of_the_four_words_does_what_it_says(worker: HandDriven) -> None:
    for word in ("retry", "snooze", "fail", "cancel"):
        jobs.say.enqueue(word)
    jobs.add.enqueue(1)
    worker.work()

    over = {job.status: job.error_message for job in archived()}
    assert over == {"failed": "hopeless", "cancelled": "not wanted", "succeeded": ""}
    waiting = {job.data["word"]: job for job in queued(status="queued")}
    assert {word: job.attempts for word, job in waiting.items()} == {
        "retry": 1,
        "snooze": 0,
    }
    for job in waiting.values():
        assert 50 < (job.run_after - job.created_at).total_seconds() < 70
    ends = {failure.end for failure in Failure.objects.all()}
    assert ends == {"failed", "snoozed", "cancelled"}
    worker.completer.write_counters()
    rows = {row.job_type: row for row in Rollup.objects.all()}
    counts = {
        name: (row.succeeded, row.failed, row.retried, row.other)
        for name, row in rows.items()
    }
    assert counts == {jobs.add.name: (1, 0, 0, 0), jobs.say.name: (0, 1, 1, 2)}
    for row in rows.values():
        attempts = sum(counts[row.job_type])
        assert sum(row.run_histogram) == sum(row.wait_histogram) == attempts


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
    assert (first.worker, first.release) == (worker.worker.name, "tests")
    assert (first.reason, third.reason) == ("", "no attempt is left")
    group = FailureGroup.objects.get()
    assert {first.fingerprint, third.fingerprint} == {group.fingerprint}
    assert (group.template, group.frame) == ("no order <n>", "tests.sample.jobs:fail")
    assert archived()[0].fingerprint == group.fingerprint


def test_an_instance_raised_again_has_its_last_traceback(worker: HandDriven) -> None:
    for handler in (jobs.fail_with_the_same, jobs.afail_with_the_same):
        made = handler.enqueue()
        worker.work()
        failures = Failure.objects.filter(job_id=made.id).order_by("pk")
        first, *others = failures.values_list("traceback", "frames", "fingerprint")
        assert "the same instance" in first[0]
        assert others == [first, first]


def test_a_late_outcome_changes_nothing(worker: HandDriven, own: OwnConnection) -> None:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    rescue(own, [worker.worker.id], crashed=True, reason="presumed dead")
    worker.finish()
    (job,) = queued()
    assert (job.status, job.crashes, job.attempts) == ("queued", 1, 0)
    assert archived() == []
    assert worker.completer.is_done
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
    assert not worker.completer.is_done
    worker.finish()
    assert [job.status for job in archived()] == ["succeeded"]


def test_a_result_that_the_database_cannot_keep_is_noted_and_the_job_succeeded(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch, caplog: LogCapture
) -> None:
    """Two jobs end in one batch; one result is too deep for PostgreSQL's parser."""
    good, bad = jobs.add.enqueue(1), jobs.add.enqueue(2)
    succeed = finish.succeed

    def with_deep_result(db: Any, holder: Any, items: Any, now: float) -> Any:
        deep = Outcome(verb=Verb.SUCCEED, result="[" * 100_000)
        items = [
            replace(one, outcome=deep) if one.outcome.result == "2" else one
            for one in items
        ]
        return succeed(db, holder, items, now)

    monkeypatch.setattr(finish, "succeed", with_deep_result)
    worker.turn()
    over = {job.id: job for job in archived(status="succeeded")}
    assert over[good.id].result == 1
    why = over[bad.id].result["not_kept"]
    assert why.startswith("the database refused the result: ")
    assert caplog.text.count("it is recorded without its content") == 1


def refusing_failures() -> AbstractContextManager[None]:
    return refusing(jobs.fail.name, only="OLD.status = 'running'")


@pytest.mark.parametrize("last", [True, False], ids=["last attempt", "to be retried"])
def test_an_outcome_that_is_refused_waits_and_holds_up_no_other(
    worker: HandDriven, last: bool, caplog: LogCapture
) -> None:
    caplog.set_level(logging.INFO)
    fail = jobs.fail.using(max_attempts=1 if last else 3)
    bad = [fail.enqueue() for _ in range(3)]
    good = [jobs.add.enqueue(n) for n in range(20)]
    with refusing_failures():
        for _ in range(5):
            worker.turn()
        assert {job.id for job in archived()} == {job.id for job in good}
        assert [job.status for job in queued()] == ["running"] * 3
        assert not worker.worker.is_empty, "they are still its jobs"
        assert not worker.completer.is_done
        assert 0 < worker.completer.tick() <= 1.0
    said = [r.getMessage() for r in caplog.records if "refuses outcomes" in r.msg]
    assert said == [
        "The database refuses outcomes of tests.sample.fail (1 waiting), will retry: "
        "RaiseException: not today"
    ]
    write_all(worker)
    if not last:
        assert [job.attempts for job in queued()] == [1, 1, 1]
        worker.work()
    over = {job.id: (job.status, job.error_message) for job in archived()}
    assert {over[job.id] for job in bad} == {("failed", "no")}
    assert "accepts outcomes of tests.sample.fail again" in caplog.text


def test_what_is_refused_is_tried_more_and_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, waits = StoppedClock(), list[float]()
    monkeypatch.setattr(deferred_outcomes, "time", clock)
    deferred = deferred_outcomes.DeferredOutcomes(lambda job_types: None)
    item: Any = (attempt_of(lambda: None), None)
    for _ in range(12):
        deferred.add([item], ValueError("no"))
        waits.append(round(deferred.seconds_until_due, 3))
        clock.now += waits[-1]
    assert waits[:3] == [0.1, 0.2, 0.4]
    assert waits[-1] == deferred_outcomes.LONGEST_WAIT


def test_a_refused_success_is_archived_as_what_it_was(
    worker: HandDriven, own: OwnConnection, caplog: LogCapture
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
    write_all(worker)
    assert [(job.status, job.result) for job in archived()] == [("succeeded", 1)]
    assert "CheckViolation" in caplog.text
    assert "Failing row" not in caplog.text
    assert not Failure.objects.exists()


def test_a_type_whose_outcomes_are_refused_is_not_claimed_without_end(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deferred_outcomes, "MOST_OF_TYPE", 5)
    jobs.fail.using(max_attempts=1).enqueue_many([{}] * 20)
    with refusing_failures():
        for _ in range(6):
            worker.turn()
        assert 5 <= worker.held <= 9
        jobs.add.enqueue(1)
        worker.turn()
        assert len(archived()) == 1, "others go on"
    write_all(worker)
    worker.work()
    assert len(archived(status="failed")) == 20


def test_counts_that_cannot_be_written_hold_up_no_outcome(
    worker: HandDriven, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completer, "COUNTERS_EVERY", 0.0)
    for change, back, kept in (
        ("ADD CONSTRAINT no CHECK (queue = '')", "DROP CONSTRAINT no", 0),  # refused
        ("RENAME queue TO hidden", "RENAME hidden TO queue", 3),  # away
    ):
        ArchivedJob.objects.all().delete()
        Rollup.objects.all().delete()
        own.run(f"ALTER TABLE jobqueue_rollup {change}")
        try:
            for n in range(3):
                jobs.add.enqueue(n)
                worker.work()
        finally:
            own.run(f"ALTER TABLE jobqueue_rollup {back}")
        assert len(archived(status="succeeded")) == 3
        jobs.add.enqueue(3)
        worker.work()
        worker.completer.write_counters()
        assert counted("succeeded") == kept + 1


def test_what_is_never_written_is_told(worker: HandDriven, caplog: LogCapture) -> None:
    jobs.fail.using(max_attempts=1).enqueue()
    with refusing_failures():
        worker.turn()
        worker.completer.close()
    assert "Could not record the outcome of finished jobs (1)" in caplog.text


def test_an_id_that_is_archived_holds_nothing_up(worker: HandDriven) -> None:
    """Somebody used an id again, by plain SQL: the archive stays as it was."""
    good, bad = jobs.add.enqueue(1), jobs.add.enqueue(2)
    ArchivedJob.objects.create(id=bad.id, job_type_id=bad.job_type, status="cancelled")
    worker.work()
    statuses = {job.id: job.status for job in archived()}
    assert statuses == {good.id: "succeeded", bad.id: "cancelled"}
    assert queued() == []


def test_failures_are_counted_by_their_fingerprint_though_a_write_fails(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    for message in ("no order 1", "no order 2", "no customer"):
        jobs.fail.enqueue(message=message)
    worker.work()

    def refuse(*arguments: object) -> None:
        raise StoreUnavailable("away", retry_in=1.0)

    with monkeypatch.context() as patch:
        patch.setattr(failure_rollup, "add", refuse)
        worker.completer.write_counters()
    assert not FailureRollup.objects.exists()
    worker.completer.close()
    templates = dict(FailureGroup.objects.values_list("fingerprint", "template"))
    counts = {
        templates[rollup.fingerprint]: (rollup.failed, rollup.retried)
        for rollup in FailureRollup.objects.all()
    }
    assert counts == {"no order <n>": (2, 4), "no customer": (1, 2)}
    assert counted("failed") == 3


def test_a_result_is_kept_unless_it_is_large_or_no_json(worker: HandDriven) -> None:
    jobs.return_much.enqueue(100_000)
    jobs.return_object.enqueue()
    jobs.write.enqueue("/dev/null")
    worker.work()
    by_type = {job.job_type_id: job for job in archived()}
    kept = by_type["tests.sample.return_much"]
    assert kept.result == {"not_kept": "result of 100,002 bytes; only 65,536 are kept"}
    refused = by_type["tests.sample.return_object"]
    assert (refused.status, refused.attempts) == ("failed", 1)
    assert refused.error_message.startswith("result is an object, which JSON does not")
    nothing = by_type["tests.sample.write"]
    assert nothing.result is None
    assert min(nothing.wait_ms, nothing.run_ms) >= 0
    assert nothing.started_at <= nothing.finished_at
