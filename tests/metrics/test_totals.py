"""Totals: every attempt and every archived job is counted once, whoever ends it."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from django.db.models import F
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.host.maintenance.rescuer import RescueCounts
from django_jobqueue.models import ArchivedCount, ArchivedJob, JobType, QueuedJob, Total
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import totals
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import expire, rescue
from django_jobqueue.store.queue.rescue import Rescued
from django_jobqueue.workers.completing.attempt_totals import ATTEMPTS
from tests.sample import jobs
from tests.store.rows import register
from tests.support.hand_driven import HandDriven
from tests.support.selection import some_slow


def counted(own: OwnConnection, what: str = "jobs") -> Counter[str]:
    """The totals of archived jobs or of attempts, of all types and queues."""
    total: Counter[str] = Counter()
    for one in totals.read(own):
        total.update(getattr(one, what))
    return +total


def write_counts(worker: HandDriven) -> None:
    """What the completer does every ten seconds."""
    worker.worker.completer.write_counters()


def lose(own: OwnConnection, ids: list[UUID], *, crashed: bool) -> None:
    """A worker claims these and is gone."""
    dead = register(own)
    QueuedJob.objects.filter(pk__in=ids).update(
        status="running",
        worker_id=dead,
        started_at=timezone.now(),
        attempts=F("attempts") + 1,
        fence=F("fence") + 1,
    )
    rescue.rescue(own, [dead], crashed=crashed, reason="killed")


def act(  # noqa: C901
    what: str, worker: HandDriven, own: OwnConnection, chance: random.Random
) -> None:
    waiting = list(
        QueuedJob.objects.filter(status="queued").values_list("pk", flat=True)
    )
    some = chance.sample(waiting, min(len(waiting), 3))
    match what:
        case "add":
            jobs.add.using(queue=chance.choice(["default", "mail"])).enqueue(1)
        case "fail":
            jobs.fail.enqueue()
        case "say":
            jobs.say.enqueue(chance.choice(["retry", "snooze", "fail", "cancel"]))
        case "work":
            worker.work()
        case "crash" | "stop":
            lose(own, some, crashed=what == "crash")
        case "cancel":
            operations.cancel(some)
        case "operator fails":
            operations.fail(some, reason="no")
        case "expire":
            now = timezone.now()
            QueuedJob.objects.filter(pk__in=some).update(expires_at=now)
            expire.expire(own)
        case "cancel while it runs":
            worker.claim()
            worker.run()
            operations.cancel(list(QueuedJob.objects.values_list("pk", flat=True)))
            worker.finish()
        case "fold":
            totals.fold(own)


ACTS = (
    *("add", "fail", "say", "work", "crash", "stop", "cancel", "operator fails"),
    *("expire", "cancel while it runs", "fold"),
)


@pytest.mark.parametrize("seed", some_slow(range(3), [0], "further seeds"))
def test_the_totals_equal_the_archive_whatever_happens(
    worker: HandDriven, own: OwnConnection, seed: int
) -> None:
    chance = random.Random(seed)
    before: Counter[str] = Counter()
    for what in [*chance.choices(ACTS, k=40), *ACTS]:
        act(what, worker, own, chance)
        write_counts(worker)
        now = counted(own)
        assert now == Counter(ArchivedJob.objects.values_list("status", flat=True)), (
            what
        )
        assert not before - now  # no total falls
        before = now
    archived = ArchivedJob.objects.filter(status__in=["succeeded", "failed"])
    sums = sum(one.attempts_sum for one in totals.read(own))
    assert sum(sum(one.attempts_histogram) for one in totals.read(own)) <= len(archived)
    assert sums <= sum(max(job.attempts, 1) for job in archived)


def test_each_attempt_has_one_outcome_and_a_crash_its_own(
    worker: HandDriven, own: OwnConnection
) -> None:
    for word in ("retry", "snooze", "fail", "cancel"):
        jobs.say.enqueue(word)
    jobs.fail.enqueue()  # three attempts
    jobs.add.enqueue(1)
    worker.work()
    write_counts(worker)
    outcomes = Counter(succeeded=1, failed=2, retried=3, snoozed=1, cancelled=1)
    assert counted(own, "attempts") == outcomes
    fail = next(t for t in totals.read(own) if t.job_type == "tests.sample.fail")
    assert [*fail.attempts_histogram] == [0, 0, 1, 0, 0, 0, 0, 0]
    assert (fail.attempts_sum, sum(fail.run_histogram)) == (3, 3)
    ended = counted(own)
    JobType.objects.filter(name="tests.sample.add").update(max_crashes=2)
    lost = jobs.add.enqueue(1).id
    for _ in range(2):
        lose(own, [lost], crashed=True)
    assert counted(own, "attempts") - outcomes == Counter(crashed=2)
    assert counted(own) - ended == Counter(failed=1)


def test_a_cancellation_in_a_long_transaction_keeps_no_worker_from_counting(
    worker: HandDriven, own: OwnConnection
) -> None:
    cancelled = jobs.add.using(run_after=timedelta(hours=1)).enqueue(1)
    jobs.add.enqueue(2)
    with transaction.atomic():
        operations.cancel([cancelled.id])
        working = threading.Thread(target=lambda: (worker.work(), write_counts(worker)))
        working.start()
        working.join()
        assert Total.objects.get().jobs_succeeded == 1
    assert counted(own) == Counter(succeeded=1, cancelled=1)


def test_the_pruner_adds_up_what_operators_ended_and_old_totals_are_dropped(
    own: OwnConnection,
) -> None:
    made = [jobs.add.enqueue(n).id for n in range(3)]
    operations.cancel(made[:2])
    operations.fail(made[2:], reason="no")
    before = counted(own)
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while pruner.tick() < 60:  # seconds, after the last of its passes
        pass
    assert not ArchivedCount.objects.exists()
    assert counted(own) == before == Counter(cancelled=2, failed=1)
    old, new = timezone.now() - timedelta(days=91), timezone.now() - timedelta(days=89)
    jobs.add.enqueue(1)  # makes the row of its type
    for name, changed in (("gone", old), ("going", new), ("tests.sample.add", old)):
        Total.objects.create(job_type=name, queue="q", changed_at=changed)
    totals.drop(own)
    assert {*Total.objects.values_list("job_type", flat=True)} == {
        *("going", "tests.sample.add")
    }


def test_queues_that_are_quiet_share_a_row_and_no_sum_falls(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever enqueues may name a new queue each time."""
    now = timezone.now()
    Total.objects.bulk_create(
        Total(
            job_type=job_type,
            queue=f"invented-{number}",
            jobs_succeeded=number,
            attempts_succeeded=2,
            run_ms=5,
            run_histogram=[1, number],
            changed_at=now - timedelta(minutes=number),
        )
        for job_type in ("shop.a", "shop.b")
        for number in range(1, 200)
    )
    quiet = {"queue": "quiet", "jobs_succeeded": 7}
    for days, job_type in ((91, "shop.a"), (89, "shop.b")):
        changed_at = now - timedelta(days=days)
        Total.objects.create(job_type=job_type, changed_at=changed_at, **quiet)
    monkeypatch.setattr(
        totals,
        "TAKE_QUIET",
        totals.TAKE_QUIET.replace(f"> {totals.MOST_QUEUES}", "> 100"),
    )
    before = totals_by_type(own)
    while totals.fold_queues(own):
        pass
    assert totals_by_type(own) == before
    rows = Counter(Total.objects.values_list("job_type", flat=True))
    assert rows == {"shop.a": 101, "shop.b": 101}
    kept = set(Total.objects.filter(job_type="shop.a").values_list("queue", flat=True))
    assert kept == {totals.OTHER, *(f"invented-{n}" for n in range(1, 101))}
    # What changed within the hour stays, however many there are.
    Total.objects.update(changed_at=now)
    Total.objects.filter(queue="invented-1").update(jobs_succeeded=F("jobs_succeeded"))
    assert not totals.fold_queues(own)
    assert Total.objects.count() == 202


def totals_by_type(own: OwnConnection) -> dict[str, tuple[int, ...]]:
    sums: dict[str, list[int]] = {}
    for one in totals.read(own):
        held = sums.setdefault(one.job_type, [0, 0, 0, 0])
        histogram = [*one.run_histogram, 0, 0]
        for n, number in enumerate(
            (one.jobs["succeeded"], one.run_ms, histogram[0], histogram[1])
        ):
            held[n] += number
    return {name: tuple(one) for name, one in sums.items()}


def test_the_rescuer_tells_no_more_queues_apart_than_the_metrics_show() -> None:
    with override_settings(JOBQUEUE={"METRICS_SERIES": 10}):
        made = RescueCounts()
        for number in range(30):
            job = Rescued(uuid4(), "shop.a", "queued", queue=f"invented-{number}")
            made.add([job])
    attempts = made.series[ATTEMPTS]
    assert len(attempts) == 11
    assert sum(attempts.values()) == 30  # type: ignore[arg-type]
