"""The loops: each is called, none decides by itself."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import override_settings
from django.utils import timezone

from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance import expirer as expirer_module
from django_jobqueue.host.maintenance import pruner as pruner_module
from django_jobqueue.host.maintenance.dead_worker_recovery import ProcessDeath
from django_jobqueue.host.maintenance.deadline_watch import LONGEST, DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.host_maintenance import LoopGroup
from django_jobqueue.host.maintenance.pruner import PAUSE_FACTOR, Pruner
from django_jobqueue.host.maintenance.rescuer import STRAYS_AFTER
from django_jobqueue.models import ArchivedJob, QueuedJob, Worker
from django_jobqueue.processes import loop as loop_module
from django_jobqueue.processes.listener import Listener
from django_jobqueue.processes.loop import AFTER_ERROR, LONGEST_AFTER_ERROR, Loop
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News, notify
from tests.host.lost import rescuer_on
from tests.sample import jobs
from tests.store.rows import ONCE, ago, make
from tests.support.hand_driven import HandDriven
from tests.support.refusing import refusing
from tests.support.rows import archived, queued
from tests.support.waiting import eventually
from tests.workers.stopped_clock import StoppedClock


class Counter(Loop):
    """Counts its rounds; does what it is told in each."""

    name = "counter"

    def __init__(self, *rounds: object) -> None:
        super().__init__()
        self.rounds = list(rounds)
        self.count = 0
        self.ticked = threading.Event()
        self.closed = threading.Event()

    def tick(self) -> float:
        self.count += 1
        self.ticked.set()
        outcome = self.rounds.pop(0) if self.rounds else 100.0
        if isinstance(outcome, Exception):
            raise outcome
        return float(outcome)

    def close(self) -> None:
        self.closed.set()


def test_a_loop_survives_every_error(caplog: pytest.LogCaptureFixture) -> None:
    loop = Counter(ValueError("odd"), StoreUnavailable("away", retry_in=3.5), 7.0)
    assert [loop.round() for _ in range(3)] == [AFTER_ERROR, 3.5, 7.0]
    assert "The counter failed, and continues" in caplog.text


@pytest.mark.parametrize(
    "error", [ValueError("odd"), StoreUnavailable("away", retry_in=60.0)], ids=repr
)
def test_a_loop_that_fails_is_not_woken(error: Exception) -> None:
    loop = Counter(*[error] * 1_000)
    loop.longest_after_error = 60.0
    loop.start()
    assert loop.ticked.wait(10)
    eventually(lambda: loop.is_resting)
    loop.ticked.clear()
    for _ in range(3):
        loop.wake()
        assert not loop.ticked.wait(0.02)
    assert loop.count == 1
    assert loop.stop(10), "a stop ends even that rest"
    assert loop.closed.is_set()


def test_a_loop_that_fails_again_and_again_rests_longer_and_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, logger="django_jobqueue")
    now = [1_000.0]
    monkeypatch.setattr(loop_module.time, "monotonic", lambda: now[0])
    loop = Counter(*[ValueError(f"odd {n}") for n in range(100)])
    rests = []
    for _ in range(100):
        rests.append(loop.round())
        now[0] += 1.0
    assert rests[:4] == [AFTER_ERROR * 2**n for n in range(4)]
    assert set(rests[6:]) == {LONGEST_AFTER_ERROR}
    assert loop.round() == 100.0
    first, repeated, over = caplog.records
    assert first.getMessage() == "The counter failed, and continues"
    assert repeated.getMessage() == (
        "The counter failed 60 more times in 60 s: ValueError: odd 60"
    )
    assert over.getMessage() == "The counter works again after 100 failures"


def test_a_loop_tells_errors_apart(caplog: pytest.LogCaptureFixture) -> None:
    loop = Counter(ValueError("odd"), KeyError("even"), ValueError("odd"))
    for _ in range(3):
        loop.round()
    said = [record.exc_info[0] for record in caplog.records if record.exc_info]
    assert said == [ValueError, KeyError, ValueError]


def test_a_loop_of_a_group_is_hurried_unless_it_failed() -> None:
    failing = Counter(StoreUnavailable("away", retry_in=60.0), 0.0)
    group = LoopGroup("group", [failing])
    group.tick()
    for _ in range(5):
        group.hurry(failing)
        assert group.tick() > 50
    assert failing.count == 1

    class Hurried(Counter):  # during its round: so it has another one at once
        def tick(self) -> float:
            if self.count == 0:
                group.hurry(self)
            return super().tick()

    hurried = Hurried(100.0, 100.0)
    group = LoopGroup("group", [hurried])
    assert group.tick() == 0.0
    assert group.tick() > 50
    assert hurried.count == 2


def test_a_loop_goes_on_after_whatever_its_round_raises() -> None:
    class Leaving(Counter):
        longest_after_error = 0.01

        def tick(self) -> float:
            if not self.count:
                self.count += 1
                raise SystemExit("of the project's own code")
            return super().tick()

    loop = Leaving()
    loop.start()
    loop.wake()
    assert loop.ticked.wait(10)
    assert loop.stop(10)


def test_loops_in_a_group_have_rounds_of_their_own() -> None:
    often, seldom = Counter(0.0, 0.0, 0.0), Counter(100.0)
    group = LoopGroup("group", [often, seldom])
    for _ in range(3):
        assert group.tick() >= 0
    assert (often.count, seldom.count) == (3, 1)
    group.hurry(seldom)
    group.tick()
    assert seldom.count == 2
    group.close()
    assert often.closed.is_set()


class Heard:
    """A listener that listens, and what it passed on."""

    def __init__(self) -> None:
        self.news: list[tuple[News, str]] = []
        self.listener = Listener(
            OwnConnection("listener"), lambda *news: self.news.append(news)
        )
        self.listen()

    def listen(self) -> None:
        self.listener.wake()
        self.listener.tick()
        assert self.listener.hears

    def is_cut_off(self) -> bool:
        try:
            self.listener.tick()
        except StoreUnavailable:
            return True
        return False


@pytest.fixture
def heard(own: OwnConnection) -> Iterator[Heard]:
    notify(own, News.JOBS, "before")
    made = Heard()
    yield made
    made.listener.close()


def test_a_listener_passes_on_what_it_hears(heard: Heard, own: OwnConnection) -> None:
    assert heard.news == [(News.JOB_TYPES, "")]  # whatever was missed
    notify(own, News.JOBS, "mail")
    own.run("SELECT pg_notify('jobqueue', 'nonsense')")
    notify(own, News.CANCEL, 7)
    while len(heard.news) < 3:
        heard.listener.tick()
    assert heard.news[1:] == [(News.JOBS, "mail"), (News.CANCEL, "7")]


def test_when_cut_off_it_listens_again(heard: Heard, own: OwnConnection) -> None:
    own.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'jobqueue listener' AND datname = current_database()"
    )
    eventually(heard.is_cut_off)
    assert not heard.listener.hears
    heard.listen()
    assert heard.news == [(News.JOB_TYPES, "")] * 2


def test_a_listener_asks_for_a_sign_of_life_only_when_it_hears_nothing(
    heard: Heard, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_statement() -> str:
        ((text,),) = own.fetch(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database() "
            "AND application_name = 'jobqueue listener'"
        )
        return str(text)

    notify(own, News.JOBS, "mail")
    heard.listener.tick()
    assert last_statement().startswith("LISTEN")
    monkeypatch.setattr("django_jobqueue.processes.listener.ALIVE_EVERY", 0.01)
    heard.listener.tick()
    assert last_statement() == "SELECT 1"


@pytest.fixture
def held(worker: HandDriven) -> HandDriven:
    jobs.add.enqueue(1)
    worker.claim()
    worker.run()
    return worker


def death_of(worker: HandDriven, **more: Any) -> ProcessDeath:
    """It exited with code 3; or in another way."""
    death = {"crashed": True, "reason": "exited with code 3", **more}
    return ProcessDeath(worker.worker.id, "here:1", **death)


def test_the_rescuer_takes_jobs_of_the_dead(
    held: HandDriven, own: OwnConnection
) -> None:
    said: list[object] = []
    rescuer = rescuer_on(own, said, quarantined=said)
    # An hour is never waited for: pytest would end the test long before.
    rescuer.settle(3_600)
    rescuer.report(death_of(held, number=5))
    assert not rescuer.is_done
    rescuer.tick()
    assert rescuer.is_done
    assert said == [0.0, 5]
    (job,) = queued()
    assert (job.status, job.crashes) == ("queued", 1)
    row = Worker.objects.get()
    assert (row.state, row.end) == ("lost", "exited with code 3")
    assert row.rescued == {"queued": 1}


def test_the_rescuer_is_waited_for_until_it_has_dealt_with_every_death_or_so_long(
    own: OwnConnection, worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    rescuer = rescuer_on(own)
    rescuer.report(death_of(worker))
    rescuer.settle(0.05)  # it cannot go on
    assert not rescuer.is_done
    assert "The database does not answer" in caplog.text
    caplog.clear()
    rescuer.start()
    rescuer.settle(3_600)
    assert rescuer.is_done
    assert rescuer.stop(10)
    assert "does not answer" not in caplog.text


@pytest.mark.parametrize("stopping", [False, True])
def test_only_what_the_end_of_the_host_cut_off_is_remembered_for_the_dump(
    held: HandDriven, own: OwnConnection, stopping: bool
) -> None:
    (made,) = queued()
    rescuer = rescuer_on(own)
    rescuer.report(death_of(held, crashed=False, stopping=stopping))
    rescuer.tick()
    assert [job.id for job in rescuer.released] == ([made.id] if stopping else [])


def test_the_rescuer_is_patient_at_first(held: HandDriven, own: OwnConnection) -> None:
    Worker.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    rescuer = rescuer_on(own)
    rescuer.tick()
    assert Worker.objects.get().state == "running"
    rescuer._patient_until = 0.0  # private: it is there for long
    rescuer._blind = True  # private: it could not see for a while
    rescuer.tick()
    assert Worker.objects.get().state == "running"
    rescuer._patient_until = 0.0  # private: as above
    rescuer.tick()
    assert Worker.objects.get().state == "lost"
    assert queued()[0].status == "queued"


def test_the_rescuer_rests_no_longer_than_a_lease(own: OwnConnection) -> None:
    assert LONGEST - 1 < rescuer_on(own).tick() <= LONGEST
    with override_settings(JOBQUEUE={"LEASE": 3.0}):
        assert 2.0 < rescuer_on(own).tick() <= 3.0


def test_what_the_dead_sent_last_is_found(
    worker: HandDriven, own: OwnConnection
) -> None:
    rescuer = rescuer_on(own)
    rescuer.tick()  # nothing is there
    rescuer.report(death_of(worker))
    jobs.add.enqueue(1)
    assert 0 < rescuer.tick() <= STRAYS_AFTER
    worker.claim()  # commits after its death
    worker.run()
    rests = []
    for _ in range(8):
        rescuer.next_strays_at = 0.0  # that much later
        rests.append(rescuer.tick())
        assert queued()[0].status == "queued"
    assert all(rest <= STRAYS_AFTER * 2**n for n, rest in enumerate(rests, start=1))
    assert rests[-1] > LONGEST - 1  # as before


def test_the_rescuer_tells_of_jobs_that_must_run_alone(own: OwnConnection) -> None:
    jobs.add.enqueue(1)
    QueuedJob.objects.update(quarantined=True)
    said: list[object] = []
    before = time.monotonic()
    rescuer_on(own, quarantined=said).tick()
    (seen_at,) = said
    assert isinstance(seen_at, float)
    assert before <= seen_at <= time.monotonic()


def test_the_expirer_archives_what_nobody_claims(own: OwnConnection) -> None:
    expirer = Expirer(own, DeadlineWatch(own, WorkerConfig()))
    assert LONGEST - 1 < expirer.tick() <= LONGEST
    soon = timezone.now() + timedelta(seconds=2)
    jobs.add.using(expires_at=soon).enqueue(1)
    assert 0 < expirer.tick() <= 2
    QueuedJob.objects.update(expires_at=timezone.now())
    assert expirer.tick() == 0.0
    (job,) = archived()
    assert (job.status, job.attempts, job.started_at) == ("expired", 0, None)


def test_expired_jobs_that_the_database_refuses_to_archive_keep_no_others(
    own: OwnConnection,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = make(ONCE, expires_at=ago(2))
    expirer = Expirer(own, DeadlineWatch(own, WorkerConfig()))
    with refusing(ONCE):
        for _ in range(2):
            others = {make(expires_at=ago(1)) for _ in range(5)}
            assert expirer.tick() > 1
            assert {job.id for job in archived()} >= others
    assert [job.id for job in queued()] == [refused]
    assert caplog.text.count("expired and cannot be archived: not today") == 1

    expirer.tick()
    assert queued()
    monkeypatch.setattr(expirer_module, "time", StoppedClock(1e9))
    for _ in range(2):
        expirer.tick()
    assert archived(id=refused)[0].status == "expired"


def test_one_look_ahead_does_for_all_chores(own: OwnConnection) -> None:
    deadlines = DeadlineWatch(own, WorkerConfig())
    first, second = Counter(), Counter()
    assert deadlines.next_for(first).expiry is None
    jobs.add.using(expires_at=timezone.now() + timedelta(seconds=60)).enqueue(1)
    assert deadlines.next_for(second).expiry is None
    for look in (deadlines.next_for(second), deadlines.next_for(first, reread=True)):
        assert look.expiry == pytest.approx(60, abs=5)


def test_the_pruner_looks_every_hour_for_what_it_has_passed(
    own: OwnConnection, worker: HandDriven, monkeypatch: pytest.MonkeyPatch
) -> None:
    def archive_one(days: int) -> UUID:
        jobs.add.enqueue(days)
        worker.work()
        (job,) = archived(finished_at__gt=timezone.now() - timedelta(days=1))
        age = timezone.now() - timedelta(days=days)
        ArchivedJob.objects.filter(id=job.id).update(finished_at=age)
        return job.id

    def prune() -> set[UUID]:
        while pruner.tick() < 100:
            pass
        return set(ArchivedJob.objects.values_list("id", flat=True))

    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    archive_one(days=10)
    assert prune() == set()
    late = archive_one(days=11)
    archive_one(days=9)
    assert prune() == {late}
    monkeypatch.setattr(pruner_module, "time", StoppedClock(1e9))
    assert prune() == set()


def test_a_pruner_whose_batch_is_cut_off_rests_as_after_one_that_is_not(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is short of disk would else be asked for the same again at once."""
    clock = StoppedClock()

    def cut_off(*given: object) -> None:
        clock.now += 15.0
        raise StoreUnavailable("canceling statement due to timeout", retry_in=0.05)

    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    monkeypatch.setattr(pruner_module, "time", clock)
    monkeypatch.setattr(pruner_module.prune, "prune", cut_off)
    assert pruner.round() == 15.0 * PAUSE_FACTOR
