"""What handlers tell reaches the database: at once, then rarely, and at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction

from django_jobqueue import ClaimLost, current_job, get_job
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.execution.attempt import Attempt
from django_jobqueue.models import Failure, Report
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.text.redaction import MASK
from django_jobqueue.workers.reporter import APART, WRITE_EVERY, Reporter
from tests.execution.test_attempt import attempt_of
from tests.sample import jobs
from tests.store.rows import make
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued
from tests.support.waiting import eventually
from tests.workers.stopped_clock import StoppedClock

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


@pytest.fixture
def reporter(own: OwnConnection, clock: StoppedClock) -> Reporter:
    return Reporter("here:1", own, clock=clock)


@pytest.fixture
def telling(reporter: Reporter) -> Iterator[Callable[[], Attempt]]:
    """Make attempts that run, and tell."""
    made: list[Attempt] = []

    def make_one() -> Attempt:
        attempt = attempt_of(lambda: None)
        id = make(status="running", worker_id=1, fence=1, attempts=1)
        attempt.job = attempt.job._replace(id=id)
        attempt.on_report = reporter.add
        attempt.started = 999.0
        made.append(attempt)
        return attempt

    yield make_one
    for attempt in made:
        attempt.leave()


def told(attempt: Attempt) -> Any:
    return Report.objects.get(job_id=attempt.job.id)


def test_the_first_thing_is_written_at_once_and_what_follows_waits_for_its_second(
    reporter: Reporter, clock: StoppedClock, telling: Callable[[], Attempt]
) -> None:
    attempt = telling()
    attempt.here().progress(1, 10)
    reporter.tick()
    attempt.here().progress(2)
    clock.now += WRITE_EVERY / 2
    assert reporter.tick() == pytest.approx(WRITE_EVERY / 2)
    assert told(attempt).done == 1.0
    attempt.here().progress(3)
    clock.now += WRITE_EVERY / 2
    reporter.tick()
    assert told(attempt).done == 3.0

    before = told(attempt).updated_at
    clock.now += WRITE_EVERY
    reporter.tick()
    assert told(attempt).updated_at == before  # it told nothing more


def test_statements_of_a_process_are_apart(
    reporter: Reporter, clock: StoppedClock, telling: Callable[[], Attempt]
) -> None:
    one, two, three = telling(), telling(), telling()
    one.here().checkin("one")
    reporter.tick()
    two.here().checkin("two")
    three.here().checkin("three")
    assert reporter.tick() == pytest.approx(APART)
    assert Report.objects.count() == 1
    clock.now += APART
    reporter.tick()
    assert Report.objects.count() == 3


@pytest.mark.parametrize("follows", [["after it"], []])
def test_what_could_not_be_written_is_written_later(
    telling: Callable[[], Attempt],
    reporter: Reporter,
    clock: StoppedClock,
    own: OwnConnection,
    monkeypatch: pytest.MonkeyPatch,
    follows: list[str],
) -> None:
    def refuse(*given: object) -> Any:
        raise StoreUnavailable("no database", retry_in=1.0)

    attempt = telling()
    attempt.here().log("before the outage")
    with monkeypatch.context() as patch:
        for way in ("run", "fetch", "fetch_all"):
            patch.setattr(own, way, refuse)
        with pytest.raises(StoreUnavailable):
            reporter.tick()
        for line in follows:
            attempt.here().log(line)
    clock.now += WRITE_EVERY
    reporter.tick()
    texts = [text for _, _, text in told(attempt).lines]
    assert texts == ["before the outage", *follows]


@pytest.mark.parametrize("handler", [jobs.tell, jobs.atell], ids=["sync", "async"])
def test_the_last_state_is_there_at_the_end(worker: HandDriven, handler: Any) -> None:
    jobs.add.enqueue(a=1)  # which tells nothing, and has no row
    id = handler.enqueue(lines=3).id
    worker.work()
    row = Report.objects.get()
    assert archived(id=id)[0].status == "succeeded"
    assert (row.job_id, row.number, row.done, row.total) == (id, 1, 3.0, 3.0)
    assert row.note == "done"
    if handler is jobs.tell:
        lines = [line[1:] for line in row.lines]
        assert lines == [["info", f"line {n}"] for n in range(3)]


def test_each_attempt_has_its_own_report_without_secrets(worker: HandDriven) -> None:
    id = jobs.tell.enqueue(lines=2, retry=True, secret="tok-98765").id
    worker.work()
    worker.work()
    rows = list(Report.objects.filter(job_id=id).order_by("fence"))
    assert [row.number for row in rows] == [1, 2]
    assert rows[0].fence < rows[1].fence
    tail = Failure.objects.filter(job_id=id).first().log_tail  # of the last lines
    assert tail.splitlines()[-1].endswith(f"INFO with {MASK}")
    assert "tok-98765" not in str(list(Report.objects.values()))


def test_an_atomic_job_is_seen_in_its_transaction(worker: HandDriven) -> None:
    gate = jobs.gates["atomic"] = threading.Event()
    try:
        id = jobs.tell_atomically.enqueue(gate="atomic").id
        worker.claim()
        eventually(
            lambda: worker.worker.reporter.tick() and Report.objects.exists(),
            what="the handler to tell",
        )
        assert Report.objects.get(job_id=id).note == "inside"
    finally:
        gate.set()
    worker.complete()
    assert archived(id=id)[0].status == "succeeded"
    assert Report.objects.get(job_id=id).note == "at the end"


def test_saved_metadata_are_there_for_the_next_attempt(worker: HandDriven) -> None:
    id = jobs.remember.enqueue().id
    worker.work()
    worker.work()
    job = get_job(id)
    assert job.result == 2
    assert job.metadata == {"step": 2}


def test_a_worker_that_lost_its_lease_saves_no_metadata(worker: HandDriven) -> None:
    id = jobs.tell.enqueue(lines=1).id
    worker.claim()
    worker.run()
    (attempt,) = worker.worker.held
    (row,) = queued(id=id)
    row.fence += 1
    row.save()
    with pytest.raises(ClaimLost), transaction.atomic():
        attempt.here().save_metadata()
    assert queued(id=id)[0].metadata is None
    assert current_job(default=None) is None
