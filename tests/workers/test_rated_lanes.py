"""When lanes of a type with a rate are claimed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.utils import timezone

from django_jobqueue import InvalidArguments, PerKey, Rate, Retry, job, operations
from django_jobqueue.models import AuditEntry, Bucket, JobType, QueuedJob
from django_jobqueue.testing import drain
from tests.sample import jobs
from tests.store.rates import gap
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived
from tests.support.run_workers import BRISK, RunWorkers
from tests.support.tables import differing, refusal
from tests.support.waiting import eventually
from tests.workers.stopped_clock import StoppedClock

Declare = Callable[..., Any]
SLOW = Rate(20, per=1_200, burst=2)
BY_NUMBER = PerKey("number", rate=SLOW)


def of_number(number: int = 0) -> None: ...


def retried() -> None:
    raise Retry(after=timedelta(0))


def asked_to_wait(hold: bool = True) -> None:
    raise Retry("too many requests", after=60, hold=hold)


def pass_time(seconds: float) -> None:
    for bucket in Bucket.objects.all():
        bucket.full_at -= timedelta(seconds=seconds)
        bucket.save()


def turns(worker: HandDriven, count: int) -> None:
    for _ in range(count):
        worker.turn(told=True)


def test_a_lane_rests_until_the_next_start(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, rate=SLOW)
    worker = make_worker()
    handler.enqueue_many([{}] * 2)
    worker.work()  # and is idle, since it has no job that waits
    assert len(archived()) == 2

    handler.enqueue_many([{}] * 3)
    for _ in range(3):
        worker.claim(told=True)
    selection = worker.dispatcher.lane_selection
    assert 0 < selection.next_starts.seconds <= gap(SLOW).total_seconds()
    assert worker.worker.is_empty
    assert not worker.worker.is_idle  # a drain waits

    pass_time(gap(SLOW).total_seconds())
    selection.next_starts.ask_all()
    worker.claim()
    assert worker.held == 1


@pytest.mark.parametrize(("hold", "started"), [(True, 1), (False, 2)])
def test_a_job_may_hold_back_all_that_share_its_rate(
    declare: Declare, make_worker: Make, hold: bool, started: int
) -> None:
    handler = declare(asked_to_wait, rate=Rate(1_000, per=1, burst=2))
    worker = make_worker(threads=1)
    handler.enqueue_many([{"hold": hold}] * 2)
    for _ in range(3):
        worker.turn()
        worker.dispatcher.lane_selection.next_starts.ask_all()
    assert QueuedJob.objects.filter(attempts=1).count() == started


def test_a_last_attempt_may_hold_as_well(declare: Declare, worker: HandDriven) -> None:
    declare(asked_to_wait, rate=Rate(1_000, per=1), max_attempts=1).enqueue()
    worker.work()
    assert archived()[0].status == "failed"
    left = Bucket.objects.get().full_at - timezone.now()
    assert left > timedelta(seconds=50)


def test_a_job_without_a_rate_holds_nothing_back_and_says_so(
    declare: Declare, worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    declare(asked_to_wait).enqueue()
    worker.turn()
    assert QueuedJob.objects.get().attempts == 1
    assert "holds nothing back" in caplog.text
    assert not Bucket.objects.exists()
    with pytest.raises(ValueError, match="hold needs a time"):
        Retry("later", hold=True)


def test_a_claim_in_vain_is_not_repeated_at_once(
    worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    selection = worker.dispatcher.lane_selection
    monkeypatch.setattr(time, "monotonic", StoppedClock())
    selection.wait_for_start(jobs.add.name, 0.0001, got_none=True)
    assert 0.01 <= selection.next_starts.seconds <= 1


def test_a_free_slot_asks_again(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, rate=Rate(1_000, per=0.2, burst=50))
    worker = make_worker(threads=2)
    handler.enqueue_many([{}] * 20)
    worker.work()
    assert len(archived()) == 20


def test_each_attempt_is_a_start(declare: Declare, worker: HandDriven) -> None:
    made = declare(retried, rate=SLOW).enqueue()
    turns(worker, 3)
    assert QueuedJob.objects.get(pk=made.id).attempts == 2


@pytest.mark.parametrize(
    "options", [{}, {"concurrency": 1}, {"delivery": "at_most_once"}, {"atomic": True}]
)
def test_a_rate_goes_with_other_options_and_keeps_no_other_type_waiting(
    declare: Declare, worker: HandDriven, options: dict[str, Any]
) -> None:
    handler = declare(of_number, rate=SLOW, priority=50, **options)
    handler.enqueue_many([{}] * 5)
    jobs.add.enqueue_many([{"a": 1}] * 6)
    turns(worker, 6)
    assert len(archived(job_type=jobs.add.name)) == 6
    assert len(archived(job_type=handler.name)) == 2


def test_workers_obey_a_new_rate(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, rate=SLOW)
    worker = make_worker(threads=16)
    handler.enqueue_many([{}] * 16)
    worker.claim()
    assert worker.held == 2

    def claim_by(rate: str) -> None:
        operations.override(handler, rate=rate)
        worker.dispatcher.policies_changed()
        worker.claim()

    claim_by("60000/m burst 1")
    assert JobType.objects.get(pk=handler.name).rate_override == "60000/60s burst 1"
    # It is not to last as long as the slow rate would take.
    eventually(lambda: (claim_by("60000/m burst 1"), worker.held > 2)[1])
    before = worker.held
    claim_by("1/h")
    assert before <= worker.held <= before + 1
    claim_by("unlimited")
    assert worker.held == 16


def test_a_drain_of_tests_keeps_to_no_rate(declare: Declare) -> None:
    handler = declare(of_number, rate=SLOW)
    by_key = declare(of_number, name="tests.by_number", per_key=BY_NUMBER)
    for each in (handler, by_key):
        each.enqueue_many([{}] * 5)
        for _ in range(3):
            QueuedJob.objects.filter(pk=each.enqueue().id).update(quarantined=True)
    assert len(drain()) == 16


def test_a_wrong_rate_is_refused_where_it_is_declared() -> None:
    whole = "rate limit must be a whole number"
    rows: list[tuple[Any, str]] = [
        (Rate(10, per=60, burst=6), "burst must be at most half of the limit, 5, not"),
        (Rate(10, per=0), "rate per must be more than zero"),
        (Rate(10, per=-1), "rate per must be more than zero"),
        (Rate(10, per=float("nan")), "rate per must be more than zero"),
        (Rate(10, per="60"), "rate per must be a timedelta or a number"),
        (Rate(0, per=60), f"{whole} of at least 1"),
        (Rate(2.5, per=60), whole),
        (Rate(10, per=60, burst=0), "rate burst must be a whole number of at least 1"),
        (Rate(10**8, per=60), "at most 1,000,000 starts a second"),
        ("100/m", "rate must be a Rate"),
        (100, "rate must be a Rate"),
    ]

    def declared(rate: Any) -> str:
        return refusal(ImproperlyConfigured, lambda: job(rate=rate)(of_number))

    assert differing(rows, declared, lambda got, wanted: wanted in got) == []


def of_keys(worker: HandDriven) -> str:
    return "".join(sorted(str(a.job.limit_key)[-1] for a in worker.worker.held))


def test_each_key_has_a_rate_of_its_own(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, per_key=BY_NUMBER)
    worker = make_worker(threads=16)
    handler.enqueue_many({"number": number} for number in (1, 1, 1, 1, 2))
    worker.claim()
    assert of_keys(worker) == "112"
    worker.complete()
    worker.claim()
    assert of_keys(worker) == ""
    assert not worker.worker.is_idle  # a drain waits

    handler.enqueue(3)
    worker.claim(told=True)
    assert of_keys(worker) == "3"
    assert 0 < worker.dispatcher.lane_selection.next_starts.seconds <= 1.1


def test_who_waits_for_a_rate_does_not_scan_the_lanes_each_time(
    declare: Declare, make_worker: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = declare(of_number, rate=SLOW)
    first, second = make_worker(threads=2), make_worker(threads=2)
    handler.enqueue_many([{}] * 5)
    first.claim()
    second.claim()
    dispatcher = second.dispatcher
    scanner, scans = dispatcher.scanner, []
    scan = scanner.scan
    monkeypatch.setattr(scanner, "scan", lambda busy: scans.append(scan()) or scans[-1])
    monkeypatch.setattr(scanner, "next_at", time.monotonic() + 60)
    for _ in range(5):
        dispatcher.lane_selection.next_starts.ask_all()
        second.claim()
    assert not scans
    assert not second.worker.is_idle  # a drain waits

    monkeypatch.setattr(scanner, "job_due_at", 0.0)  # one of another lane
    dispatcher.lane_selection.next_starts.ask_all()
    second.claim()
    assert len(scans) == 1


def test_nobody_is_woken_for_rated_jobs(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, rate=SLOW)
    worker = make_worker(threads=2)
    handler.enqueue_many([{}] * 5)
    worker.claim()
    assert worker.held == 2
    assert not worker.dispatcher.lane_selection.others_could_claim
    jobs.add.enqueue(1)
    worker.dispatcher.scanner.scan()
    assert worker.dispatcher.lane_selection.others_could_claim


def test_a_keyed_lane_rests_for_its_type(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, rate=SLOW, per_key=PerKey("number"))
    worker = make_worker(threads=16)
    handler.enqueue_many({"number": number} for number in (1, 2, 3, 4))
    worker.claim()
    assert len(of_keys(worker)) == 2
    assert worker.dispatcher.lane_selection.next_starts.seconds > 1.1

    operations.override(handler, rate="unlimited")
    worker.dispatcher.policies_changed()
    worker.claim()
    assert of_keys(worker) == "1234"


def test_operators_set_the_rate_of_keys(declare: Declare, make_worker: Make) -> None:
    handler = declare(of_number, per_key=PerKey("number"))
    worker = make_worker(threads=16)
    change = operations.override_key_rate(handler, "8/m burst 4", by="anna")
    assert (change.before, change.after) == (None, "8/60s burst 4")
    handler.enqueue_many([{"number": 1}] * 9)
    worker.claim()
    assert of_keys(worker) == "1111"

    assert operations.override_key_rate(handler.name, None, by="bob").after is None
    worker.dispatcher.policies_changed()
    worker.claim()
    assert of_keys(worker) == "1" * 9
    assert AuditEntry.objects.filter(verb="override limit").count() == 2

    rows = [
        ("tests.sample.write_keyed", "often", "rate must be a rate, such as"),
        ("tests.sample.write_keyed", "10/60s burst 6", "rate burst must be at most"),
        ("tests.sample.write_keid", "10/s", "write_keyed"),
    ]
    override = operations.override_key_rate
    assert not differing(
        rows,
        lambda *given: refusal(InvalidArguments, override, *given),
        lambda got, wanted: wanted in got,
    )


JOURNAL = """
CREATE TABLE test_starts (at timestamptz);
CREATE FUNCTION test_start() RETURNS trigger LANGUAGE plpgsql AS
$body$ BEGIN INSERT INTO test_starts VALUES (NEW.started_at); RETURN NULL; END $body$;
CREATE TRIGGER test_start AFTER UPDATE OF status ON jobqueue_queuedjob FOR EACH ROW
  WHEN (NEW.status = 'running') EXECUTE FUNCTION test_start()
"""
NO_JOURNAL = "DROP FUNCTION test_start() CASCADE; DROP TABLE test_starts"


@pytest.fixture
def claimed_at(transactional_db: None) -> Iterator[Callable[[], list[datetime]]]:
    def claimed_at() -> list[datetime]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT at FROM test_starts ORDER BY at")
            return [at for (at,) in cursor.fetchall()]

    with connection.cursor() as cursor:
        cursor.execute(JOURNAL)
        yield claimed_at
        cursor.execute(NO_JOURNAL)


@pytest.mark.processes
def test_real_workers_keep_to_a_rate_and_a_drain_waits_for_it(
    runworkers: Callable[..., RunWorkers],
    journal: str,
    claimed_at: Callable[[], list[datetime]],
) -> None:
    JobType.objects.filter(pk=jobs.write.name).update(rate_override="8/0.4s burst 2")
    jobs.write.enqueue_many([{"journal": journal, "word": str(n)} for n in range(12)])

    worker = runworkers("--drain", "--processes", "2", constants=BRISK)

    assert worker.wait() == 0, worker.output
    assert Counter(what for what, _ in jobs.notes(journal))["start"] == 12
    moments = claimed_at()
    assert len(moments) == 12
    for first in moments:
        window = first + timedelta(seconds=0.4)
        assert sum(1 for at in moments if first <= at < window) <= 8
