"""Atomic jobs: their effects and their completion are one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import F

from django_jobqueue.domain.retry_decision import StopReason
from django_jobqueue.execution import atomic
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.execution.attempt_steps import call
from django_jobqueue.models import QueuedJob
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue.rescue import rescue
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, counted, queued
from tests.support.waiting import eventually


def test_handler_and_completion_commit_together(
    worker: HandDriven, journal: str
) -> None:
    jobs.write_atomic.enqueue(journal, "first")
    worker.claim()
    worker.run()  # no completer has run yet
    (job,) = archived()
    assert (job.status, job.result) == ("succeeded", "first")
    assert Group.objects.count() == 1
    worker.finish()
    assert worker.worker.is_empty


def test_a_failing_handler_leaves_no_effect(worker: HandDriven, journal: str) -> None:
    Group.objects.create(name="taken")
    jobs.write_atomic.enqueue(journal, "taken")  # a duplicate
    jobs.return_object_atomic.enqueue("one")  # which is not JSON: no retry
    worker.turn()
    assert [(job.status, job.attempts) for job in queued()] == [("queued", 1)]
    (job,) = archived()
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error_message.startswith("result['group'] is a Group, which JSON does")
    assert Group.objects.count() == 1


def test_a_worker_that_lost_its_lease_commits_nothing(
    worker: HandDriven,
    own: OwnConnection,
    journal: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inside, go_on = threading.Event(), threading.Event()
    note = jobs.note

    def pause(*words: Any) -> None:
        note(*words)
        inside.set()
        go_on.wait(20)

    monkeypatch.setattr(jobs, "note", pause)
    jobs.write_atomic.enqueue(journal, "lost")
    worker.claim()
    assert inside.wait(20)  # its row is written, its transaction open
    rescue(own, [worker.worker.id], crashed=True, reason="presumed dead")
    go_on.set()
    worker.run()
    worker.finish()

    assert Group.objects.count() == 0
    assert archived() == []
    (job,) = queued()
    assert (job.status, job.crashes) == ("queued", 1)
    assert worker.worker.is_empty


@pytest.mark.parametrize(
    "change",
    [lambda rows: rows.delete(), lambda rows: rows.update(fence=F("fence") + 1)],
)
def test_a_job_that_changes_its_own_row_fails_and_changes_nothing(
    worker: HandDriven,
    journal: str,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], object],
) -> None:
    """Its claim comes back with the rollback, and would go on forever."""
    note = jobs.note

    def clean_up(*words: Any) -> None:
        change(QueuedJob.objects.all())
        note(*words)

    monkeypatch.setattr(jobs, "note", clean_up)
    jobs.write_atomic.enqueue(journal, "itself")
    worker.work()
    assert Group.objects.count() == 0
    (job,) = archived(status="failed")
    assert "deleted or changed the row of this job" in job.error_message
    assert queued() == []


def test_who_is_told_to_stop_while_its_transaction_begins_is_not_started(
    worker: HandDriven, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_by(asked: StopReason) -> None:
        def tell(attempt: Attempt) -> Any:
            attempt.interrupt(asked)
            return call(attempt)

        monkeypatch.setattr(atomic, "call", tell)
        jobs.write_atomic.enqueue(journal, "name")
        worker.turn()

    end_by(StopReason.CANCEL)
    assert [job.status for job in archived()] == ["cancelled"]
    end_by(StopReason.STOP)
    assert [(job.status, job.attempts) for job in queued()] == [("queued", 0)]
    assert jobs.notes(journal) == []


def test_a_cancel_right_after_the_start_reaches_the_handler(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = jobs.stay_atomically.enqueue("gate")
    jobs.gates["gate"] = threading.Event()
    worker.claim()
    eventually(lambda: [a for a in worker.worker.executors[0].running if a.started])
    worker.worker.cancel(str(made.id))
    worker.run()
    worker.finish()
    assert [job.status for job in archived()] == ["cancelled"]


@pytest.mark.parametrize("error", [ValueError("mail is down"), SystemExit(3)])
def test_a_hook_that_fails_after_the_commit_fails_neither_the_job_nor_other_hooks(
    worker: HandDriven,
    journal: str,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    called: list[int] = []

    def hook(number: int) -> None:
        called.append(number)
        if number == 1:
            raise error

    def register(*words: object) -> None:
        for number in range(3):
            transaction.on_commit(partial(hook, number))

    monkeypatch.setattr(jobs, "note", register)
    made = jobs.write_atomic.enqueue(journal, "name")
    worker.work()
    worker.worker.completer.write_counters()
    assert called == [0, 1, 2]
    assert [(job.status, job.attempts) for job in archived()] == [("succeeded", 1)]
    (record,) = [r for r in caplog.records if r.name.startswith("django_jobqueue")]
    assert "one of its on_commit hooks failed" in record.getMessage()
    assert vars(record)["job_id"] == str(made.id)
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert counted("succeeded") == 1


def test_a_commit_is_not_interrupted_and_its_hooks_are(
    worker: HandDriven,
    journal: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception in the middle of a commit would leave open whether it was done."""
    told: list[object] = []
    (executor,) = [e for e in worker.worker.executors if not e.is_async]

    def in_hook() -> None:
        (attempt,) = executor.running
        told.append(attempt.committed)
        attempt.interrupt(StopReason.CANCEL)
        for _ in range(1_000):
            time.sleep(0.01)  # where the exception arrives

    real = Attempt.begin_commit

    def begin_commit(attempt: Attempt) -> None:
        real(attempt)
        told.append(attempt.interrupt(StopReason.CANCEL))
        told.append(attempt.interrupt(StopReason.STOP))

    monkeypatch.setattr(Attempt, "begin_commit", begin_commit)
    monkeypatch.setattr(jobs, "note", lambda *words: transaction.on_commit(in_hook))
    jobs.write_atomic.enqueue(journal, "name")
    worker.work()
    assert told == [False, False, True]
    assert "hooks failed" in caplog.text
    assert [(job.status, job.attempts) for job in archived()] == [("succeeded", 1)]


def test_a_timeout_while_it_commits_gives_the_process_up_in_the_end(
    worker: HandDriven, journal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit may wait forever, for a standby: then only the end of the process
    helps."""
    given_up: list[float | None] = []
    real = Attempt.begin_commit

    def begin_commit(attempt: Attempt) -> None:
        real(attempt)
        assert attempt.interrupt(StopReason.TIME_OUT)
        given_up.append(attempt.unresponsive_at)

    monkeypatch.setattr(Attempt, "begin_commit", begin_commit)
    jobs.write_atomic.enqueue(journal, "name")
    worker.work()
    assert given_up[0] is not None
    assert [job.status for job in archived()] == ["succeeded"]
