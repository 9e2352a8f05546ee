"""The database's clock is set, beside real processes, or runs fast: leases are judged
by it, and schedules fire by it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue.conf import conf
from django_jobqueue.contrib.schedules import operations as schedule_operations
from django_jobqueue.contrib.schedules.models import Firing, Schedule
from django_jobqueue.contrib.schedules.scheduler import Scheduler
from django_jobqueue.domain.registry import autodiscover
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import Failure, QueuedJob, Worker
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.seen import all_archived, starts
from tests.domain.test_schedule_rules import oracle
from tests.sample import jobs
from tests.store.rows import register
from tests.support.commands import Process, start_code
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
Set = Callable[[float], None]
IN_TRANSACTIONS = ("transaction_timestamp", "now")


@contextmanager
def clock(state: str, now: str, volatility: str) -> Iterator[Callable[[str], None]]:
    """Sessions that begin now have a clock of their own: an expression of ``{real}``,
    the real one, and of the row ``state`` of a table; yields what updates that row.

    It is to be asked for before workers are, so that they have ended when it is taken
    away.
    """
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA fake_clock")
        cursor.execute(f"CREATE TABLE fake_clock.state AS SELECT {state} AS state")
        for function in ("clock_timestamp", "statement_timestamp", *IN_TRANSACTIONS):
            real = f"pg_catalog.{function}()"
            cursor.execute(
                f"CREATE FUNCTION fake_clock.{function}() RETURNS timestamptz "
                f"{volatility} LANGUAGE sql AS $$ SELECT {now.format(real=real)}"
                " FROM fake_clock.state $$"
            )
        path = "public, fake_clock, pg_catalog"
        cursor.execute(f'ALTER DATABASE "{name}" SET search_path = {path}')
        yield lambda value: cursor.execute(f"UPDATE fake_clock.state SET state={value}")
        cursor.execute(f'ALTER DATABASE "{name}" RESET search_path')
        cursor.execute("DROP SCHEMA fake_clock CASCADE")


@pytest.fixture
def set_clock(transactional_db: None) -> Iterator[Set]:
    """Set the clock that new sessions of this database see: ``set_clock(3600)``."""
    with clock("interval '0'", "{real} + state", "STABLE") as update:
        yield lambda seconds: update(f"{seconds} * interval '1 s'")


def all_have_renewed(count: int) -> Callable[[], bool]:
    """Whether so many workers live, and each has renewed since now."""
    times = dict(Worker.objects.values_list("id", "renewed_at"))

    def check() -> bool:
        rows = Worker.objects.filter(state="running")
        return len(rows) == count and all(times[r.id] != r.renewed_at for r in rows)

    return check


def test_nobody_who_renews_is_given_up_when_the_clock_is_set_forward(
    set_clock: Set, runworkers: Run, journal: str
) -> None:
    """Each time there is a moment in which every lease has lapsed."""
    runs = [
        runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST=host) for host in "ab"
    ]
    for run in runs:
        run.started()
    for word in "xy":
        jobs.await_leave.enqueue(journal, word)
    eventually(lambda: len(starts(journal)) == 2)
    for days in (1, 2):
        set_clock(days * 86_400)
        eventually(all_have_renewed(2))
    for word in "xy":
        jobs.give_leave(journal, word)

    eventually(all_archived(2))
    assert starts(journal) == {"x": 1, "y": 1}
    assert [job.crashes for job in archived()] == [0, 0]
    assert not Failure.objects.exists()
    assert not Worker.objects.filter(state="lost").exists()


@pytest.fixture
def rescuer(set_clock: Set, own: OwnConnection) -> Rescuer:
    """One that has seen the one worker."""
    register(own, lease=conf.lease)
    made = Rescuer(
        own,
        DeadlineWatch(own, WorkerConfig()),
        on_quarantined=lambda at: None,
        on_recovered=lambda n: None,
    )
    made._patient_until = 0.0  # private: no outage was before
    made.tick()
    return made


def test_a_rescuer_that_sees_the_clock_being_set_waits_until_all_have_renewed(
    set_clock: Set,
    rescuer: Rescuer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_clock(60)
    rescuer.tick()
    assert Worker.objects.get().state == "running"
    assert "The database's clock was set forward by" in caplog.text
    later = time.monotonic() + 1_000
    monkeypatch.setattr(
        "django_jobqueue.host.maintenance.rescuer.time.monotonic", lambda: later
    )
    rescuer.tick()
    assert Worker.objects.get().state == "lost"


def test_a_rescuer_waits_for_remote_workers_as_long_as_their_leases(
    set_clock: Set, rescuer: Rescuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    Worker.objects.update(remote=True, lease_seconds=600)
    set_clock(86_400)
    now = time.monotonic()
    for seconds, state in ((0, "running"), (599, "running"), (601, "lost")):
        monkeypatch.setattr(
            "django_jobqueue.host.maintenance.rescuer.time.monotonic",
            lambda later=now + seconds: later,
        )
        rescuer.tick()
        assert Worker.objects.get().state == state


def test_a_rescuer_shortens_leases_that_would_hold_for_long_when_the_clock_is_set_back(
    set_clock: Set, rescuer: Rescuer
) -> None:
    set_clock(-3_600)
    rescuer.tick()
    row = Worker.objects.get()
    assert row.lease_until < timezone.now() - timedelta(minutes=50)
    assert row.lease_until - row.renewed_at < timedelta(seconds=conf.lease + 1)


BEGIN = datetime(2026, 3, 28, tzinfo=UTC)
RULES = (
    ("30 2 * * *", "Europe/Berlin"),  # leaves out an hour on 29 March
    ("*/20 * * * *", "Europe/Berlin"),
    ("15,45 1-3 * * *", "Antarctica/Troll"),  # two hours
    ("0 */2 * * *", "Africa/Cairo"),
    ("30 2 * * *", "Australia/Sydney"),  # repeats an hour on 5 April
    ("*/30 * * * *", "Australia/Lord_Howe"),  # half an hour
    ("45 1 * * *", "Australia/Lord_Howe"),
    ("0 0 * * *", "America/Santiago"),  # repeats the hour before midnight on 5 April
    ("59 23 * * *", "Pacific/Auckland"),
    ("0 * * * *", "UTC"),
)


@pytest.fixture
def let_time_pass(transactional_db: None) -> Iterator[Set]:
    """The clock of sessions that begin now stands at BEGIN; when this is called with a
    speed, it runs so many times as fast."""
    tomorrow, real = "pg_catalog.now() + interval '1 day'", "clock_timestamp()"
    passed = f"greatest(interval '0', pg_catalog.{real} - state)"
    fast = f"timestamptz '{BEGIN.isoformat()}' + speed * {passed}"
    with clock(f"1.0::float8 AS speed, {tomorrow}", fast, "VOLATILE") as update:
        yield lambda speed: update(f"pg_catalog.{real}, speed = {speed}")


class Hosts:
    """Processes that fire; any of them may be killed, stopped or continued."""

    def __init__(self, output: Path, count: int, speed: float) -> None:
        self._output, self._speed = output, speed
        self._all = [self._start() for _ in range(count)]
        self.kills = self.stops = 0

    def disturb(self, chance: random.Random) -> None:
        number = chance.randrange(len(self._all))
        victim = self._all[number]
        if chance.random() < 0.5:
            victim.kill()
            victim.wait()
            self._all[number] = self._start()
            self.kills += 1
        else:
            os.kill(victim.pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.3))
            os.kill(victim.pid, signal.SIGCONT)
            self.stops += 1

    def end(self) -> None:
        for process in self._all:
            process.kill()
            process.wait()

    def _start(self) -> Process:
        return start_code(
            f"from tests.crashes.test_clock import fire; fire({self._speed})",
            self._output,
        )


def fire(speed: float) -> None:
    """Fire until killed, by a clock with so many seconds in a second: a host that does
    nothing else."""
    autodiscover()
    connection = OwnConnection("maintenance", pooled=False)
    scheduler = Scheduler(connection, DeadlineWatch(connection, WorkerConfig()))
    while True:
        wait = scheduler.tick()
        time.sleep(min(0.2, max(0.0, wait) / speed))


def have_no_session() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'jobqueue maintenance'"
        )
        return cursor.fetchone() is None


@pytest.mark.parametrize(
    ("count", "days", "seconds"),
    some_slow([(2, 2, 1.0), (4, 9, 5.0)], [(2, 2, 1.0)], "more days and hosts"),
)
def test_each_moment_is_fired_once_whatever_happens_to_the_hosts(
    let_time_pass: Set, tmp_path: Path, count: int, days: int, seconds: float
) -> None:
    """All these days last so many seconds."""
    last = BEGIN + timedelta(days=days)
    speed = (last - BEGIN).total_seconds() / seconds
    Schedule.objects.all().delete()  # the shop's
    jobs.add.enqueue(0)
    QueuedJob.objects.all().delete()
    for expression, zone in RULES:
        schedule_operations.create(
            f"{expression} {zone}".replace(" ", "_"),
            jobs.add.name,
            rule=expression,
            time_zone=zone,
            data={"a": 1},
            missed="all",
            missed_within=timedelta(days=30),
            missed_most=1_000,
        )
    hosts, chance = Hosts(tmp_path / "hosts.log", count, speed), random.Random(7)
    try:
        unplanned = Schedule.objects.filter(planned_for="")
        eventually(lambda: not unplanned.exists(), within=60)
        let_time_pass(speed)
        began = time.monotonic()
        while time.monotonic() - began < seconds or not (hosts.kills and hosts.stops):
            hosts.disturb(chance)
        over = Firing.objects.filter(fires_at__gt=last).values("schedule").distinct()
        eventually(lambda: over.count() == len(RULES), within=60)
    finally:
        hosts.end()
    eventually(have_no_session)  # what they sent last may be committed after their end
    for expression, zone in RULES:
        name = f"{expression} {zone}".replace(" ", "_")
        fired = [f.fires_at for f in Firing.objects.filter(schedule=name)]
        expected = oracle(expression, ZoneInfo(zone), BEGIN, last)
        assert sorted(moment for moment in fired if moment <= last) == list(expected)
    made = QueuedJob.objects.values_list("metadata__schedule", "metadata__fires_at")
    assert len(made) == len(set(made)) == Firing.objects.count() > 150 * days
