"""Workers die, and are taken for dead, on purpose."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group
from django.test import override_settings

from django_jobqueue import get_job
from django_jobqueue.models import Failure, Worker
from django_jobqueue.signals import attempt_failed
from django_jobqueue.testing import crash, drain, lose_lease
from tests.support.rows import archived, queued
from tests.testing import jobs

pytestmark = pytest.mark.django_db


def names() -> list[str]:
    return sorted(Group.objects.values_list("name", flat=True))


def test_a_crash_spends_no_attempt_and_the_job_runs_again() -> None:
    told: list[object] = []

    def receive(**arguments: object) -> None:
        told.append(arguments)

    attempt_failed.connect(receive)
    try:
        job = jobs.crash_once.enqueue()
        first, second = drain()
    finally:
        attempt_failed.disconnect(receive)
    assert told == [], "nobody hears of an attempt that died"
    assert (first.verb, first.outcome, first.crashed) == ("crash", None, True)
    assert (first.job.status, first.job.crashes, first.job.attempts) == ("queued", 1, 0)
    assert (second.verb, second.attempt, second.job.result) == ("succeed", 1, 1)
    assert get_job(job.id).crashes == 1
    assert names() == ["run 0", "run 1"]


def test_a_job_that_always_crashes_ends_alone_and_as_failed() -> None:
    job = jobs.crash_always.enqueue()
    assert [ran.verb for ran in drain()] == ["crash", "crash"]
    over = get_job(job.id)
    assert (over.status, over.crashes) == ("failed", 2)
    assert over.error_class == "jobqueue.PoisonJob"
    assert [f.reason for f in Failure.objects.all()] == [
        "killed by signal 9 (SIGKILL)"
    ] * 2
    assert {w.state for w in Worker.objects.all()} == {"lost"}


def test_a_lost_lease_refuses_what_the_handler_came_to() -> None:
    job = jobs.lose_once.enqueue()
    first, second = drain()
    assert (first.verb, first.lost, first.outcome) == ("lose", True, None)
    assert (first.job.status, first.job.crashes) == ("queued", 1)
    assert (second.verb, second.job.result) == ("succeed", 1)
    assert get_job(job.id).status == "succeeded"
    assert names() == ["run 0", "run 1"]
    assert len(archived()) == 1


def test_a_lost_lease_rolls_an_atomic_handler_back() -> None:
    jobs.lose_once_atomically.enqueue()
    first, second = drain()
    assert (first.verb, first.job.crashes) == ("lose", 1)
    assert (second.verb, second.job.result) == ("succeed", 1)
    assert names() == ["run 1"]


def test_async_handlers_crash_and_lose_their_lease_as_well() -> None:
    jobs.afault.enqueue("crash")
    jobs.afault.enqueue("lose")
    ran = drain()
    assert sorted(one.verb for one in ran) == ["crash", "lose", "succeed", "succeed"]
    assert queued() == []


def test_they_stand_in_for_any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Group.objects, "create", crash)
    jobs.greet.enqueue("anna")
    assert [ran.verb for ran in drain(limit=1)] == ["crash"]
    monkeypatch.undo()
    assert [ran.verb for ran in drain()] == ["succeed"]


def test_they_are_for_handlers_that_are_drained() -> None:
    with pytest.raises(RuntimeError, match=r"crash\(\) is for handlers that drain"):
        crash()
    with (
        override_settings(JOBQUEUE={"MODE": "immediate"}),
        pytest.raises(RuntimeError, match=r"lose_lease\(\) is for handlers"),
    ):
        jobs.lose_once.enqueue()
    with pytest.raises(RuntimeError):
        lose_lease()
