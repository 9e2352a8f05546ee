"""Atomic jobs: their effects and their completion are one."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.rescue import rescue
from tests.conftest import HandDriven, archived, queued
from tests.sample import jobs


def test_the_handler_and_its_completion_commit_together(
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


def test_a_failing_atomic_handler_leaves_no_effect(
    worker: HandDriven, journal: str
) -> None:
    Group.objects.create(name="taken")
    jobs.write_atomic.using(queue="default").enqueue(journal, "taken")  # a duplicate
    worker.claim()
    worker.run()
    worker.finish()
    (job,) = queued()
    assert (job.status, job.attempts) == ("queued", 1)
    assert Group.objects.count() == 1


def test_a_result_that_is_not_json_leaves_no_effect_and_is_not_retried(
    worker: HandDriven,
) -> None:
    jobs.return_object_atomic.enqueue("one")
    worker.work()
    (job,) = archived()
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error_message.startswith("result['group'] is a Group, which JSON does")
    assert not Group.objects.exists()


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
    rescue(own, [worker.worker.id], crashed=True, reason="taken for dead")
    go_on.set()
    worker.run()
    worker.finish()

    assert Group.objects.count() == 0
    assert archived() == []
    (job,) = queued()
    assert (job.status, job.crashes) == ("queued", 1)
    assert worker.worker.is_empty


def test_a_rescue_passes_over_a_job_that_is_committing(
    worker: HandDriven, own: OwnConnection, journal: str
) -> None:
    """Between the fence and the commit the row is locked: then it is not rescued."""
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    (job,) = queued()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM jobqueue_queuedjob WHERE id = %s AND fence = %s",
            [job.id, job.fence],
        )
        rescued = rescue(own, [worker.worker.id], crashed=True, reason="dead")
    assert rescued == []
