"""Attempts that ran too long in a process that was killed for it: written, counted and
told as if their own worker had ended them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from django_jobqueue import job, retries
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.retry_decision import Outcome, Verb
from django_jobqueue.exceptions import JobTimeout, StoreUnavailable
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import (
    Failure,
    FailureGroup,
    FailureRollup,
    JobType,
    QueuedJob,
    Rollup,
    Worker,
)
from django_jobqueue.store.connection import OwnConnection
from tests.host.lost import Told, commits, held_by, lines
from tests.store.rows import ONCE, archived_job, job_type, queued_job, register
from tests.support.refusing import refusing
from tests.support.rows import archived, counted, queued
from tests.support.tables import differing

pytestmark = pytest.mark.django_db(transaction=True)

HUNG = "tests.sample.hold_lock"  # timeout 1 s, two attempts, at once again
REASON = "killed, because a job held the interpreter's lock"
Case = tuple[dict[str, Any], dict[str, Any]]
TIMEOUT = "django_jobqueue.exceptions.JobTimeout"


Declare = Callable[..., str]


@pytest.fixture
def declare() -> Iterator[Declare]:
    """Declare a job type of this name; returns it."""
    names: list[str] = []

    def declare(name: str, **options: Any) -> str:
        job(name=name, **options)(hang_no_more)
        names.append(name)
        return job_type(name)

    yield declare
    for name in names:
        registry.remove(name)


def hang_no_more() -> None: ...


def kill(
    rescuer: Rescuer, worker: int, *timed_out: Any, suspects: tuple[Any, ...] = ()
) -> None:
    rescuer.report(
        ProcessDeath(worker, "host:1", False, REASON, 1, False, timed_out, suspects)
    )
    rescuer.tick()


def test_it_is_retried_as_its_type_says_and_its_neighbours_are_released(
    rescuer: Rescuer,
    own: OwnConnection,
    told: Callable[[], list[Told]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = register(own, "web-7:4711", release="r9")
    unresponsive, other = held_by(worker, HUNG, queue="q"), held_by(worker)

    kill(rescuer, worker, unresponsive)

    again, neighbour = queued_job(unresponsive), queued_job(other)
    assert (again.status, again.attempts, again.crashes) == ("queued", 1, 0)
    assert (again.worker_id, again.quarantined) == (None, False)
    assert (neighbour.status, neighbour.attempts, neighbour.crashes) == ("queued", 0, 0)
    kept = Failure.objects.get(job_id=unresponsive)
    assert (kept.end, kept.number, kept.error_class) == ("timed_out", 1, TIMEOUT)
    assert (kept.worker, kept.release) == ("web-7:4711", "r9")
    assert kept.error_message.startswith(
        "it ran longer than its timeout of 1 s and could not be asked to stop"
    )
    assert FailureGroup.objects.get().fingerprint == kept.fingerprint
    counted = Rollup.objects.get(job_type=HUNG)
    assert (counted.queue, counted.retried, counted.failed) == ("q", 1, 0)
    assert 3_000 <= counted.run_ms < 60_000
    assert (FailureRollup.objects.get().retried, counted.wait_ms) == (1, 2_000)
    retried, rescued = told()
    assert (retried.name, retried.id) == ("job_retried", unresponsive)
    assert retried.arguments["attempt"] == 1
    assert isinstance(retried.arguments["outcome"], Outcome)
    assert retried.arguments["outcome"].verb is Verb.RETRY
    assert (rescued.name, rescued.id) == ("job_rescued", other)
    (line,) = lines(caplog)
    assert line.levelno == logging.WARNING
    said = (line.job_id, line.job_type, line.attempt)
    assert said == (str(unresponsive), HUNG, 1)
    assert "attempt 1 failed, again in 0.0 s: it ran longer" in line.getMessage()
    row = Worker.objects.get()
    assert (row.state, row.end) == ("stopped", REASON)


def test_the_last_attempt_has_failed(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    unresponsive = held_by(holder, HUNG)
    QueuedJob.objects.update(attempts=2)

    kill(rescuer, holder, unresponsive)

    (held,) = archived(id=unresponsive, error_class=TIMEOUT, worker="host:1")
    assert (held.status, held.attempts, held.crashes) == ("failed", 2, 0)
    assert counted("failed") == 1
    (failed,) = told()
    assert failed.name == "job_failed"
    assert failed.arguments["outcome"].reason == "no attempt is left"
    (line,) = lines(caplog)
    assert line.levelno == logging.ERROR
    said = "attempt 2 failed for good (no attempt is left) after 3."
    assert said in line.getMessage()


def under_attempts(own: OwnConnection, rescuer: Rescuer, case: Case) -> tuple[Any, ...]:
    """What a job becomes that ran too long, and how many attempts it may have had."""
    columns, of_type = dict(case[0]), case[1]
    worker = register(own)
    JobType.objects.filter(name=HUNG).update(**of_type)
    unresponsive = held_by(worker, HUNG)
    if columns.pop("cancel", False):
        own.run("UPDATE jobqueue_queuedjob SET cancel_requested_at = now()")
    QueuedJob.objects.filter(id=unresponsive).update(**columns)

    kill(rescuer, worker, unresponsive)

    JobType.objects.filter(name=HUNG).update(max_attempts_override=None)
    found: Any = queued_job(unresponsive) or archived_job(unresponsive)
    allowed = getattr(found, "effective_max_attempts", None)
    QueuedJob.objects.all().delete()
    return found.status, found.crashes, allowed


def test_attempts_and_a_cancel_count(rescuer: Rescuer, own: OwnConnection) -> None:
    override = "max_attempts_override"
    rows: list[tuple[Case, tuple[Any, ...]]] = [
        (({"attempts": 1}, {}), ("queued", 0, None)),
        (({"attempts": 1, "max_attempts": 1}, {}), ("failed", 0, 1)),
        (({"attempts": 2, "max_attempts": 3}, {}), ("queued", 0, None)),
        (({"attempts": 1}, {override: 1}), ("failed", 0, 1)),
        (({"attempts": 9}, {override: -1}), ("queued", 0, None)),
        (({"attempts": 9, "max_attempts": 9}, {override: -1}), ("failed", 0, 9)),
        (({"attempts": 1, "cancel": True}, {}), ("cancelled", 0, 2)),
        (({"attempts": 2, "cancel": True}, {}), ("cancelled", 0, 2)),
    ]
    assert differing(rows, partial(under_attempts, own, rescuer)) == []


def test_a_job_that_may_not_be_retried_has_failed(
    rescuer: Rescuer, own: OwnConnection, declare: Declare
) -> None:
    final = declare("tests.final", retry={JobTimeout: False}, max_attempts=9)
    worker = register(own)
    for name in (ONCE, final):
        kill(rescuer, worker, held_by(worker, name))
        worker = register(own)
    failed = [(held.status, held.error_class) for held in archived()]
    assert failed == [("failed", TIMEOUT)] * 2


def hang(attempt: int, exception: BaseException, job: object) -> float:
    raise AssertionError("code of the project is called")


def test_the_rules_hold_and_no_function_of_the_project_is_called(
    rescuer: Rescuer,
    own: OwnConnection,
    declare: Declare,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries.random, "random", lambda: 0.5)
    fixed, hour = {"policy": "fixed"}, timedelta(hours=1)
    rows: list[tuple[dict[str, Any], dict[str, Any], tuple[float, str]]] = [
        ({"backoff": 50}, {}, (50, "")),
        ({"backoff": hang}, {}, (5, "the default wait")),
        ({"backoff": hang}, {**fixed, "wait": 30}, (30, "the wait of this job")),
        ({"retry": {OSError: hang}, "backoff": 50}, {}, (50, "")),
        (
            {"retry": {OSError: hour}, "backoff": hang},
            fixed,
            (3_600, "the wait for OSError"),
        ),
    ]

    def ruled(options: dict[str, Any], backoff: dict[str, Any]) -> tuple[float, str]:
        worker = register(own)
        columns = {"timeout": timedelta(seconds=2), "backoff": backoff or None}
        name = declare(f"tests.ruled_{worker}", max_attempts=9, **options)
        id = held_by(worker, name, **columns)
        kill(rescuer, worker, id)
        (held,) = queued(id=id)
        kept = Failure.objects.get(job_id=id)
        assert "its timeout of 2 s" in kept.error_message
        left = (held.run_after - timezone.now()).total_seconds()
        return pytest.approx(left, abs=3), kept.reason

    assert differing(rows, ruled) == []


def test_the_row_of_an_unknown_type_counts(rescuer: Rescuer, holder: int) -> None:
    name = job_type("tests.stranger", max_attempts=2, timeout=timedelta(seconds=7))
    first, last = held_by(holder, name), held_by(holder, name)
    QueuedJob.objects.filter(id=last).update(attempts=2)
    kill(rescuer, holder, first, last)
    assert queued_job(first) is not None
    (held,) = archived(id=last)
    assert held.status == "failed"
    assert "its timeout of 7 s" in held.error_message


def test_what_is_over_is_left_alone(rescuer: Rescuer, own: OwnConnection) -> None:
    worker, alive = register(own), register(own, "host:2")
    kept = held_by(alive, HUNG)
    gone = held_by(worker, HUNG)
    QueuedJob.objects.filter(id=gone).delete()
    kill(rescuer, worker, gone, kept)
    held = queued_job(kept)
    assert held.status == "running"
    assert not Failure.objects.exists()
    assert rescuer.is_done


def test_a_suspect_counts_a_crash_and_others_nothing(
    rescuer: Rescuer, holder: int, told: Callable[[], list[Told]]
) -> None:
    suspect, other = held_by(holder, crashes=1), held_by(holder)
    kill(rescuer, holder, suspects=(suspect,))
    jobs = {held.id: held for held in QueuedJob.objects.all()}
    assert (jobs[suspect].crashes, jobs[suspect].quarantined) == (2, True)
    assert (jobs[other].crashes, jobs[other].attempts) == (0, 0)
    assert [one.name for one in told()] == ["job_rescued", "job_rescued"]
    assert Worker.objects.get().rescued == {"queued": 2}


@pytest.mark.parametrize("arrive", [True, False])
def test_it_is_told_once_also_if_the_answer_was_lost(
    rescuer: Rescuer,
    holder: int,
    told: Callable[[], list[Told]],
    monkeypatch: pytest.MonkeyPatch,
    arrive: bool,
) -> None:
    unresponsive = held_by(holder, HUNG)
    with commits(monkeypatch, arrive=arrive), pytest.raises(StoreUnavailable):
        kill(rescuer, holder, unresponsive)
    rescuer.recoveries[0].next_at = 0.0
    rescuer.tick()
    assert [(one.name, one.id) for one in told()] == [("job_retried", unresponsive)]
    assert counted("retried") == 1
    assert Failure.objects.count() == 1


def test_one_that_the_database_refuses_to_end_keeps_no_other_one(
    rescuer: Rescuer, holder: int, caplog: pytest.LogCaptureFixture
) -> None:
    unresponsive, other = held_by(holder, ONCE), held_by(holder)
    with refusing(ONCE):
        kill(rescuer, holder, unresponsive)
        assert [job.id for job in queued(status="queued")] == [other]
        assert rescuer.is_done
        assert "cannot be written" in caplog.text
    rescuer.next_strays_at = 0.0
    rescuer.tick()
    assert archived(id=unresponsive)
