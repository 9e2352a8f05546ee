"""Schedules fire once, on time, and as their options say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.utils import timezone

from django_jobqueue import enqueue, operations
from django_jobqueue.contrib.schedules import due_schedules, firing_rows, schedule_rows
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.contrib.schedules.scheduler import (
    LOCKED_FIRST,
    LOCKED_LAST,
    Scheduler,
    fire,
    firing_of,
)
from django_jobqueue.domain.option_checks import OURS
from django_jobqueue.domain.registry import registry
from django_jobqueue.domain.schedule_rules import cron, every
from django_jobqueue.domain.schedules import schedules
from django_jobqueue.exceptions import DuplicateJob, InvalidArguments
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.declarer import Declarer
from django_jobqueue.host.maintenance.host_maintenance import MaintenanceThread
from django_jobqueue.models import QueuedJob, UniqueWindow
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.store.meanwhile import open_transaction
from tests.support.hand_driven import HandDriven
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
RARELY = every(days=1_000)  # no other moment than those that a test makes


@pytest.fixture(autouse=True)
def _nobody_elses(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """The shop of these tests has schedules of its own."""
    monkeypatch.setattr(schedules, "_by_name", {})  # private: none is declared
    Schedule.objects.all().delete()


class Host:
    """One with a scheduler, and the schedules that its code declares."""

    def __init__(self, db: OwnConnection) -> None:
        self.db = db
        self.scheduler = Scheduler(db, DeadlineWatch(db, WorkerConfig()))
        self.tick = self.scheduler.tick

    def declare(self) -> None:
        job_types.declare(self.db, registry)
        schedule_rows.declare(self.db)

    def plan(self) -> None:
        """Declare all schedules, and look when they fire next."""
        self.declare()
        self.tick()

    def fire(self, ago: timedelta = timedelta(0)) -> datetime:
        """Have a round after all were due so long ago; returns that moment."""
        moment = be_due(ago)
        self.tick()
        return moment


@pytest.fixture
def host(own: OwnConnection) -> Host:
    return Host(own)


@pytest.fixture
def make_host() -> Iterator[Callable[[], Host]]:
    made: list[Host] = []

    def make() -> Host:
        made.append(Host(OwnConnection("maintenance", pooled=False)))
        return made[-1]

    yield make
    for host in made:
        host.db.close()


@pytest.fixture
def hourly(host: Host) -> None:
    jobs.add.at(RARELY, name="hourly")(a=1, b=2)
    host.plan()


def be_due(ago: timedelta = timedelta(0)) -> datetime:
    """The next firing of all schedules was so long ago."""
    moment = (timezone.now() - ago).replace(microsecond=0)
    Schedule.objects.update(next_at=moment)
    return moment


@pytest.mark.usefixtures("hourly")
def test_it_fires_once(host: Host) -> None:
    moment = host.fire()
    host.tick()
    (job,) = QueuedJob.objects.all()
    assert job.data == {"a": 1, "b": 2}
    assert job.run_after == moment
    assert job.metadata == {"schedule": "hourly", "fires_at": moment.isoformat()}
    assert job.enqueued_by == "schedule hourly"
    (firing,) = Firing.objects.all()
    assert (firing.schedule, firing.fires_at) == ("hourly", moment)
    assert (firing.outcome, firing.job_id) == ("fired", job.id)
    assert Schedule.objects.get().next_at > moment

    # The same moment never fires twice, whatever its row says.
    Schedule.objects.update(next_at=moment)
    host.tick()
    assert QueuedJob.objects.count() == 1
    assert Schedule.objects.get().next_at > moment


def test_its_jobs_have_the_options_before_it_and_those_of_their_type(
    host: Host,
) -> None:
    chosen = jobs.add.using(
        queue="reports",
        priority=7,
        tags=["nightly"],
        expires_in=60,
        max_attempts=2,
        metadata={"team": "ops"},
        enqueued_by="the clock",
    )
    chosen.at(RARELY, name="hourly")(1)
    jobs.keep.at(RARELY)(1)
    host.declare()
    operations.override(jobs.keep, priority=42)
    host.tick()
    moment = host.fire()
    other, job = QueuedJob.objects.order_by("queue")
    assert (other.queue, other.priority) == (jobs.keep.declaration.policy.queue, 42)
    assert (job.queue, job.priority, job.tags) == ("reports", 7, ["nightly"])
    assert (job.max_attempts, job.enqueued_by) == (2, "the clock")
    assert job.expires_at == moment + timedelta(seconds=60)
    assert job.metadata["team"] == "ops"


def test_a_paused_one_does_not_fire_and_missed_nothing_when_it_is_resumed(
    host: Host,
) -> None:
    jobs.add.at(RARELY, name="hourly", missed="all")(1)
    host.plan()
    schedule_operations.pause("hourly", reason="stock-taking", by="eve")
    host.fire(3 * HOUR)
    schedule_operations.resume("hourly")
    host.tick()
    host.tick()
    assert not QueuedJob.objects.exists()
    assert not Firing.objects.exists()
    assert Schedule.objects.get().next_at > timezone.now()


@pytest.mark.parametrize(
    ("missed", "outcomes"),
    [("once", ["missed", "late"]), ("skip", ["missed"]), ("all", ["late"] * 6)],
)
def test_an_outage_ends_as_the_option_says(
    host: Host, missed: Any, outcomes: list[str]
) -> None:
    jobs.add.at(every(minutes=10), name="often", missed=missed)(1)
    host.plan()
    start = rounded(timezone.now() - HOUR) + timedelta(minutes=2)
    ten = [start + timedelta(minutes=10 * n) for n in range(7)]
    Schedule.objects.update(
        rule=f"every 600 since {start.timestamp():.0f}", planned_for=""
    )
    host.tick()
    Schedule.objects.update(next_at=start)
    host.tick()
    made = [f for f in ten if f <= timezone.now() - timedelta(seconds=70)]
    assert len(made) == 6
    firings = Firing.objects.order_by("fires_at")
    assert [firing.outcome for firing in firings] == outcomes
    fired = [f.fires_at for f in firings if f.outcome == "late"]
    assert fired == made[len(made) - len(fired) :]
    assert sum(firing.number for firing in firings) == 6
    assert QueuedJob.objects.count() == len(fired)


def rounded(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def test_a_firing_is_skipped_while_a_job_of_the_schedule_is_not_finished(
    host: Host, worker: HandDriven
) -> None:
    jobs.add.at(RARELY, name="hourly", overlap="skip")(1)
    jobs.add.at(RARELY, name="other", overlap="skip")(1)
    host.plan()
    for ago in (2 * MINUTE, MINUTE):
        host.fire(ago)
    outcomes = Firing.objects.order_by("fires_at", "schedule")
    assert [(f.schedule, f.outcome, f.job_id is None) for f in outcomes] == [
        ("hourly", "late", False),
        ("other", "late", False),
        ("hourly", "skipped", True),
        ("other", "skipped", True),
    ]
    worker.work()
    host.fire()
    assert Firing.objects.filter(outcome="fired").count() == 2


@pytest.mark.parametrize("of_type", [jobs.index, jobs.remind, jobs.add_alone])
def test_overlaps_are_skipped_for_however_long_the_type_is_unique(
    host: Host, of_type: Any
) -> None:
    of_type.at(RARELY, name="hourly", overlap="skip")(1)
    host.plan()
    host.fire(2 * MINUTE)
    if of_type is not jobs.add_alone:
        UniqueWindow.objects.all().delete()  # it is over
        QueuedJob.objects.update(unique_key=None)  # a claim of it, and a retry
    host.fire(MINUTE)
    with pytest.raises(DuplicateJob):
        schedule_operations.run_now("hourly")
    assert QueuedJob.objects.count() == 1
    assert not UniqueWindow.objects.exists()
    QueuedJob.objects.all().delete()
    schedule_operations.run_now("hourly", by="anna")
    UniqueWindow.objects.all().delete()
    host.fire()
    made = Firing.objects.order_by("fires_at").values_list("outcome", flat=True)
    assert sorted(made) == ["late", "manual", "skipped", "skipped"]


def test_no_key_of_a_caller_is_that_of_a_schedule(host: Host) -> None:
    jobs.add.at(RARELY, name="hourly", overlap="skip")(1)
    host.plan()
    for text in ("hourly", "schedule hourly", '["schedule", "hourly"]'):
        jobs.add.using(unique_key=text, queue="tenant").enqueue(1)
    host.fire()
    assert Firing.objects.get().outcome == "fired"
    QueuedJob.objects.exclude(queue="tenant").delete()
    schedule_operations.run_now("hourly")


@pytest.mark.parametrize("name", sorted(OURS))
def test_only_a_firing_says_for_which_moment_a_job_is(name: str) -> None:
    said = f"metadata must not have '{name}'"
    metadata = {"mine": 1, name: "2000-01-01T00:00:00+00:00"}
    for make in (
        lambda: jobs.add.using(metadata=metadata).enqueue(1),
        lambda: enqueue("tests.sample.add", {"a": 1}, metadata=metadata),
        lambda: jobs.add.using(metadata=metadata).at(RARELY),
        lambda: jobs.followed.using(on_success=jobs.report.using(metadata=metadata)),
        lambda: schedule_operations.create(
            "s", jobs.add, rule="@daily", data={"a": 1}, options={"metadata": metadata}
        ),
    ):
        with pytest.raises((InvalidArguments, ImproperlyConfigured), match=said):
            make()


def test_a_unique_type_is_unique_for_its_schedules_too(host: Host) -> None:
    jobs.add_alone.enqueue(3)
    jobs.add_alone.at(RARELY)(3)
    host.plan()
    host.fire()
    assert QueuedJob.objects.count() == 1
    assert Firing.objects.get().outcome == "skipped"


@pytest.mark.usefixtures("hourly")
def test_who_slept_between_its_look_and_its_firing_fires_nothing(host: Host) -> None:
    moment = be_due()
    (seen,) = due_schedules.due(host.db, ["hourly"])
    host.tick()
    later = moment + HOUR
    fired = firing_rows.fire(host.db, [(seen, later, [firing_of(seen, moment)])])
    assert fired == []
    assert QueuedJob.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"rule_override": "every 7200"},
        {"time_zone_override": "Asia/Tokyo"},
        {"paused": True},
        {"gone_at": timezone.now()},
        {"starts_at": timezone.now() + HOUR},
    ],
)
def test_a_change_that_comes_first_keeps_the_old_moment_from_firing(
    host: Host, change: dict[str, Any]
) -> None:
    jobs.add.at(cron("0 * * * *", tz="UTC"), name="hourly")(1)
    host.plan()
    moment = be_due()
    (seen,) = due_schedules.due(host.db, ["hourly"])
    Schedule.objects.update(**change)
    made = [firing_of(seen, moment)]
    assert firing_rows.fire(host.db, [(seen, moment + HOUR, made)]) == []
    host.tick()
    host.tick()
    assert not QueuedJob.objects.exists()


def test_a_rule_that_cannot_be_read_does_not_hold_up_the_others(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("bad", "good"):
        jobs.add.at(RARELY, name=name)(1)
    host.plan()
    be_due()
    Schedule.objects.filter(name="bad").update(rule_override="every blue moon")
    host.tick()
    host.tick()
    assert [f.schedule for f in Firing.objects.all()] == ["good"]
    assert (
        caplog.text.count("The schedule 'bad' cannot fire: cannot read the rule") == 1
    )


def test_what_the_code_declares_no_more_is_gone_and_comes_back(host: Host) -> None:
    for name in ("stays", "goes", "theirs"):
        jobs.add.at(RARELY, name=name)(1)
    host.plan()
    going = schedules.get("goes")
    schedules.remove("goes")
    host.declare()
    gone = dict(Schedule.objects.values_list("name", "gone_at"))
    assert [name for name, since in gone.items() if since] == ["goes"]
    schedules.remove("theirs")  # which only the code of other hosts declares
    host.fire(2 * HOUR)
    assert {f.schedule for f in Firing.objects.all()} == {"stays"}
    schedules.add(going)
    host.plan()
    row = Schedule.objects.get(name="goes")
    assert row.gone_at is None
    assert row.next_at > timezone.now()
    assert not Firing.objects.filter(schedule="goes").exists()


@pytest.mark.usefixtures("hourly")
def test_a_start_changes_nothing_that_operators_said(host: Host) -> None:
    schedule_operations.override("hourly", rule="every 2 hours", data={"a": 5})
    schedule_operations.pause("hourly")
    before = Schedule.objects.values().get()
    host.declare()
    assert Schedule.objects.values().get() == before
    schedules.remove("hourly")
    jobs.add.at(every(hours=3), name="hourly")(a=1, b=2)
    host.declare()
    after = Schedule.objects.values().get()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"rule", "declared_at"}
    assert after["rule_override"] == "every 7200"


def test_jitter_spreads_within_its_limit_and_is_the_same_for_a_moment(
    host: Host,
) -> None:
    jobs.add.at(every(minutes=1), name="often", missed="all", jitter=600)(1)
    host.plan()
    be_due(10 * MINUTE)
    (seen,) = due_schedules.due(host.db, ["often"])
    host.tick()
    waits = []
    for firing in Firing.objects.all():
        job = QueuedJob.objects.get(id=firing.job_id)
        waits.append(job.run_after - firing.fires_at)
        again = firing_of(seen, firing.fires_at).new
        assert again.run_after == job.run_after
    assert len(set(waits)) > 5
    assert min(waits) >= timedelta(0)
    assert max(waits) < timedelta(seconds=600)


def test_each_of_several_that_fire_together_is_fired_once_by_several_hosts(
    make_host: Callable[[], Host],
) -> None:
    for number in range(20):
        jobs.add.at(every(seconds=1), name=f"each-{number}", missed="all")(number)
    make_host().plan()
    be_due(timedelta(seconds=5))  # so that five moments are made up for at once
    hosts = [make_host().scheduler for _ in range(4)]
    for host in hosts:
        host.start()
    eventually(lambda: Firing.objects.count() >= 120)
    for host in hosts:
        assert host.stop(20)
    made = QueuedJob.objects.values_list("metadata__schedule", "metadata__fires_at")
    assert len(made) == len(set(made)) == Firing.objects.count()
    moments: dict[str, list[datetime]] = defaultdict(list)
    for firing in Firing.objects.order_by("fires_at"):
        moments[firing.schedule].append(firing.fires_at)
    steps = {later - one for each in moments.values() for one, later in pairwise(each)}
    assert len(moments) == 20
    assert steps == {timedelta(seconds=1)}


@pytest.mark.parametrize("fires", [True, False])
def test_a_setting_keeps_a_host_from_firing(host: Host, fires: bool) -> None:
    jobs.add.at(RARELY)(1)
    host.declare()
    with override_settings(JOBQUEUE={"SCHEDULES": fires}):
        loops = MaintenanceThread(
            WorkerConfig(),
            connection=OwnConnection("maintenance"),
            declarer=Declarer(),
            on_quarantined=lambda seen_at: None,
            on_recovered=lambda number: None,
            on_drained=lambda: None,
        )
    loops.tick()
    loops.rescuer._connection.close()  # private: as at the end of its process
    assert Schedule.objects.exclude(planned_for="").exists() is fires


@contextmanager
def locked(db: OwnConnection, name: str) -> Iterator[None]:
    """Somebody has changed this schedule, and not committed."""
    with open_transaction(db) as transaction:
        row = (
            f"SELECT FROM jobqueue_schedules_schedule WHERE name = '{name}' FOR UPDATE"
        )
        transaction.fetch(row)
        yield


def test_a_locked_schedule_is_tried_less_often_and_keeps_no_other_one(
    host: Host, other: OwnConnection
) -> None:
    jobs.add.at(RARELY, name="locked")(1)
    jobs.add.at(RARELY, name="other")(2)
    host.plan()
    moment = be_due()
    with locked(other, "locked"):
        waits = [host.tick() for _ in range(3)]
        assert Firing.objects.get().schedule == "other"
        for _ in range(12):
            host.scheduler._waits = {  # private: so much later
                name: wait._replace(until=0.0)
                for name, wait in host.scheduler._waits.items()  # private: likewise
            }
            waits.append(host.tick())
        assert waits[0] <= LOCKED_FIRST
        assert LOCKED_LAST / 2 < waits[-1] <= LOCKED_LAST
        # One that is due meanwhile is waited for, and fires.
        soon = timezone.now() + timedelta(seconds=LOCKED_LAST / 4)
        Schedule.objects.filter(name="other").update(next_at=soon)
        assert host.tick() <= LOCKED_LAST / 4
        eventually(lambda: host.tick() and Firing.objects.count() == 2)
    eventually(lambda: host.tick() and Firing.objects.count() == 3)
    assert {*Firing.objects.values_list("fires_at", flat=True)} == {moment, soon}
    assert Schedule.objects.filter(next_at__gt=timezone.now()).count() == 2


def test_what_another_host_fires_at_this_moment_is_no_reason_to_wait(
    host: Host, make_host: Callable[[], Host]
) -> None:
    jobs.add.at(RARELY, name="hourly")(1)
    host.plan()
    other = make_host()
    moment = be_due()
    (seen,) = due_schedules.due(host.db, ["hourly"])
    other.tick()
    assert fire(host.db, [seen]) == (set(), [])
    Schedule.objects.update(next_at=moment)  # it goes on, though nothing is made
    assert host.tick() <= LOCKED_FIRST
    eventually(lambda: host.tick() > 1)


def test_a_firing_that_waits_for_another_transaction_keeps_no_other_one(
    host: Host, own: OwnConnection, other: OwnConnection
) -> None:
    """Somebody enqueues the job that would be its duplicate, and does not commit."""
    own.run("SET lock_timeout = 50")
    jobs.add_alone.enqueue(3)
    key = QueuedJob.objects.get().unique_key
    QueuedJob.objects.all().delete()
    jobs.add_alone.at(RARELY, name="alone")(3)
    jobs.add.at(RARELY, name="other")(2)
    host.plan()
    be_due()
    with open_transaction(other) as transaction:
        transaction.run(
            "INSERT INTO jobqueue_queuedjob (job_type, unique_key) VALUES"
            " (%(name)s, %(key)s)",
            {"name": jobs.add_alone.name, "key": key},
        )
        host.tick()
        assert Firing.objects.get().schedule == "other"
    eventually(lambda: host.tick() and Firing.objects.count() == 2)
    assert Firing.objects.get(schedule="alone").outcome == "skipped"
