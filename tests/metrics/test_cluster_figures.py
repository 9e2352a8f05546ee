"""The metrics of the cluster: what they are, and that all who ask share them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.metrics import cluster_figures, cluster_samples
from django_jobqueue.metrics.catalogue import cluster
from django_jobqueue.metrics.metric import Distribution, Sample
from django_jobqueue.models import FailureGroup, Figures, Worker
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.queue.hand_over import declare_endpoints
from tests.commands.conftest import jobqueue
from tests.sample import jobs
from tests.store.rows import ADD, FAIL, ago, make, make_many, register
from tests.support.hand_driven import HandDriven
from tests.support.tables import differing

ALWAYS = override_settings(JOBQUEUE={"METRICS_MAX_AGE": 0})
KEPT = override_settings(JOBQUEUE={"METRICS_MAX_AGE": 3_600})
HISTOGRAMS = ("attempt_duration_seconds", "attempt_wait_seconds", "job_attempts")
Values = dict[tuple[str, ...], Any]  # by name and labels


def read(db: OwnConnection | DjangoDatabase) -> Values:
    """The figures by name and labels; none is there twice."""
    samples = cluster_figures.read(db)
    values = {(one.metric, *one.labels): one.value for one in samples}
    assert len(values) == len(samples)
    return values


@ALWAYS
def test_the_figures_are_those_of_the_catalogue_and_true(
    make_worker: Any, own: OwnConnection
) -> None:
    queues = ["default", "mail"]
    worker: HandDriven = make_worker(threads=3, async_slots=5, queues=queues)
    for queue in queues:
        jobs.add.using(queue=queue).enqueue(1)
    jobs.fail.enqueue()
    worker.work()
    worker.worker.completer.write_counters()
    make_many(3, ADD)
    make(ADD, run_after=ago(-60))
    make(ADD, run_after=ago(-60), attempts=1)
    make(FAIL, queue="reports", run_after=ago(90))
    draining = register(own, threads=7)
    Worker.objects.filter(pk=draining).update(state="draining")
    register(own, "lapsed:1", lease=-1.0, threads=9)
    remote = register(own, "node", threads=0, async_slots=4)
    Worker.objects.filter(pk=remote).update(remote=True)
    operations.pause("reports", queues=True, by="test")
    declare_endpoints(own, ["shipping"])
    FailureGroup.objects.create(
        fingerprint="018f0000-0000-7000-8000-000000000001",
        coarse="018f0000-0000-7000-8000-000000000001",
        state="ignored",
        ignored_until=timezone.now() - timedelta(hours=1),
    )
    values = read(own)
    assert {name for name, *_ in values} == {*cluster()}
    for name, *labels in values:
        known = [label.values or labels for label in cluster()[name].labels]
        assert len(labels) == len(known)
        assert all(map(list.__contains__, map(list, known), labels)), (name, labels)
    add, fail = ("default", ADD), ("reports", FAIL)
    states = ("ready", "later", "retrying", "running")
    assert [values["jobqueue_jobs", *add, state] for state in states] == [3, 1, 1, 0]
    expected = {
        ("jobs", "default", FAIL, "ready"): 0,  # it once had some
        ("oldest_ready_seconds", *fail): 0,  # paused
        ("unserved_jobs", *add): 0,
        ("unserved_jobs", *fail): 1,  # nobody serves its queue
        ("wanted_slots", "default"): 3,
        ("wanted_slots", "reports"): 0,  # paused
        ("attempts_total", *add, "succeeded"): 1,
        ("attempts_total", "default", FAIL, "failed"): 1,
        ("attempts_total", *add, "crashed"): 0,
        ("finished_jobs_total", "default", FAIL, "failed"): 1,
        ("job_attempts", ADD): ([2, 0, 0, 0, 0, 0, 0, 0], 2),
        ("handed_over_jobs", "shipping"): 0,
        ("workers", "running"): 2,
        ("workers", "draining"): 1,
        ("slots", "thread"): 3,
        ("slots", "async"): 5,
        ("slots", "remote"): 4,
        ("paused", "queue", "reports"): 1,
        ("failure_groups", "open"): 2,  # one is not ignored now
        ("crashes", ADD, "culprit"): 0,
        ("database_up",): 1,
    }
    rows = [(*key, value) for key, value in expected.items()]
    assert differing(rows, lambda name, *of: values[f"jobqueue_{name}", *of]) == []
    again = read(DjangoDatabase())  # any connection reads the same, of both queues
    for name in HISTOGRAMS:
        found = values[f"jobqueue_{name}", ADD]
        assert isinstance(found, Distribution)
        assert sum(found.counts) == 2
        assert again[f"jobqueue_{name}", ADD] == found
    text = jobqueue("metrics").out
    assert f'jobqueue_attempt_duration_seconds_count{{job_type="{ADD}"}} 2.0' in text
    assert values["jobqueue_table_bytes", "jobqueue_queuedjob"] > 8_192
    assert values["jobqueue_xid_age",] > 0


@ALWAYS
def test_jobs_of_a_paused_type_are_not_late_and_an_open_transaction_is_seen(
    own: OwnConnection,
) -> None:
    oldest = ("jobqueue_oldest_transaction_seconds",)
    make(ADD, run_after=ago(90))
    make(FAIL, run_after=ago(90))
    operations.pause(ADD, by="test")
    values = read(own)
    assert values["jobqueue_oldest_ready_seconds", "default", ADD] == 0
    assert values["jobqueue_oldest_ready_seconds", "default", FAIL] >= 90
    assert values["jobqueue_jobs", "default", ADD, "ready"] == 1
    assert values["jobqueue_paused", "job_type", ADD] == 1
    assert values[oldest] == 0
    with transaction.atomic():
        make(ADD)
        assert read(own)[oldest] > 0


class Takings:
    """Counts how often figures are taken, and lets a test hold one up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.began = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        self._take = cluster_samples.take
        self._counting = threading.Lock()
        monkeypatch.setattr(cluster_samples, "take", self.take)

    def take(self, db: Any) -> Iterator[Sample]:
        with self._counting:
            self.count += 1
        self.began.set()
        assert self.may_end.wait(60)
        yield from self._take(db)


@pytest.fixture
def takings(monkeypatch: pytest.MonkeyPatch) -> Takings:
    return Takings(monkeypatch)


def read_by_threads(threads: int, times: int) -> list[Values]:
    """What so many threads read, so many times each."""

    def some(_: int) -> list[Values]:
        own = OwnConnection("tests")
        try:
            return [read(own) for _ in range(times)]
        finally:
            own.close()

    with ThreadPoolExecutor(threads) as pool:
        return [values for read in pool.map(some, range(threads)) for values in read]


@KEPT
@pytest.mark.django_db(transaction=True)
def test_readings_by_many_threads_take_the_figures_once(takings: Takings) -> None:
    make_many(3, ADD)
    shown = read_by_threads(threads=8, times=3)
    assert takings.count == 1
    assert len(shown) == 24
    assert {values["jobqueue_jobs", "default", ADD, "ready"] for values in shown} == {3}


@KEPT
def test_while_somebody_takes_them_again_the_others_get_the_old_ones(
    takings: Takings, own: OwnConnection
) -> None:
    read(own)
    Figures.objects.update(taken_at=ago(5_000))
    make_many(2, ADD)
    takings.began.clear()
    takings.may_end.clear()
    with ThreadPoolExecutor(1) as pool:
        taker = pool.submit(read_by_threads, 1, 1)
        assert takings.began.wait(60)
        old = read(own)
        takings.may_end.set()
        (fresh,) = taker.result(60)
    place = ("jobqueue_jobs", "default", ADD, "ready")
    age = ("jobqueue_figures_age_seconds",)
    assert (old.get(place), fresh[place], read(own)[place]) == (None, 2, 2)
    assert old[age] >= 5_000
    assert fresh[age] == 0
    assert takings.count == 2


def test_figures_that_cannot_be_taken_again_are_served_with_their_age(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    read(own)
    Figures.objects.update(taken_at=ago(500))

    def too_slow(db: Any) -> Iterator[Sample]:
        db.run("SELECT set_config('statement_timeout', '1', true)")
        db.fetch("SELECT pg_sleep(60)")
        yield Sample("jobqueue_xid_age", 1)

    monkeypatch.setattr(cluster_samples, "take", too_slow)
    for db in (own, DjangoDatabase()):
        caplog.clear()
        values = read(db)
        assert values["jobqueue_figures_age_seconds",] >= 500
        assert values["jobqueue_database_up",] == 1
        assert "s old and cannot be read again" in caplog.text

    def lost(*args: Any) -> Any:
        raise StoreUnavailable("the server is gone", retry_in=1)

    monkeypatch.setattr(own, "fetch", lost)
    assert read(own) == {("jobqueue_database_up",): 0}


@KEPT
def test_what_another_release_took_is_left_out(own: OwnConnection) -> None:
    figures = [
        ["jobqueue_of_the_future", 1, []],
        ["jobqueue_xid_age", 1, ["labels", "changed"]],
        ["jobqueue_job_attempts", [[1, 2], 3], [ADD]],
        ["jobqueue_busy_slots", 4, []],
    ]
    now = timezone.now()
    Figures.objects.create(name="metrics", taken_at=now, figures=figures)
    values = read(own)
    names = ("busy_slots", "figures_age_seconds", "database_up")
    assert values.keys() == {(f"jobqueue_{name}",) for name in names}


def test_a_hot_standby_serves_what_its_primary_has_read(own: OwnConnection) -> None:
    """It reads no unlogged tables, and writes none."""
    now = timezone.now() - timedelta(seconds=300)
    figures = [["jobqueue_busy_slots", 4, []]]
    Figures.objects.create(name="metrics", taken_at=now, figures=figures)
    own.run("SET default_transaction_read_only = on")
    values = read(own)
    assert values["jobqueue_busy_slots",] == 4
    assert values["jobqueue_figures_age_seconds",] >= 300
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE 'jobqueue%'"
            " AND relkind IN ('r', 'i') AND relpersistence <> 'p'"
        )
        assert cursor.fetchall() == []
