"""The database's clock was a day ahead for seconds: schedules and rates go on when it
is right again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from django_jobqueue.contrib.leases import lease_rows, standby
from django_jobqueue.contrib.leases.standby import Standby
from django_jobqueue.contrib.schedules.models import Schedule
from django_jobqueue.contrib.schedules.scheduler import Scheduler
from django_jobqueue.domain.lease_names import STANDBY
from django_jobqueue.host.maintenance import clock_repair, deadline_watch
from django_jobqueue.host.maintenance.clock_repair import ClockRepair
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.expirer import Expirer
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.models import ArchivedJob, Bucket, QueuedJob, UniqueWindow
from django_jobqueue.processes.lease_clock import lease_time
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.queue import buckets
from django_jobqueue.store.queue.holds import Hold, hold
from tests.contrib.leases.conftest import claimant
from tests.crashes.test_clock import Set, clock
from tests.sample import jobs
from tests.store.rows import archive

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 86_400.0
# A rule that nobody can read, in a row that is planned.
BREAK = """
UPDATE jobqueue_schedules_schedule
   SET rule = 'what?', planned_for = replace(planned_for, 'every 1', 'what?')
 WHERE name = 'broken'
"""

ENQUEUE = """
INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%(job_type)s, '{"user": 7}')
"""


@pytest.fixture
def set_clock(transactional_db: None) -> Iterator[Set]:
    """Set the clock of sessions that begin later, in seconds from the real one."""
    with clock("interval '0'", "{real} + state", "STABLE") as update:
        yield lambda seconds: update(f"{seconds} * interval '1 s'")


class Host:
    """Its maintenance, which begins now."""

    def __init__(self, db: OwnConnection) -> None:
        deadlines = DeadlineWatch(db, WorkerConfig())
        self.deadlines = deadlines
        self.scheduler = Scheduler(db, deadlines)
        self.repair = ClockRepair(db, deadlines)

    def round(self) -> None:
        self.deadlines.read_at = -1_000.0  # a reading's time later
        self.scheduler.tick()
        self.repair.tick()
        self.scheduler.tick()


@pytest.fixture
def _schedules(transactional_db: None) -> None:
    Schedule.objects.all().delete()
    rules = {"often": "every 1", "nightly": "30 2 * * *", "rarely": "every 86400000"}
    for name, rule in {**rules, "broken": "every 1"}.items():
        columns = {"job_type_id": jobs.add.name, "time_zone": "UTC", "data": {"a": 1}}
        Schedule.objects.create(name=name, origin="admin", rule=rule, **columns)


def waits() -> dict[str, float]:
    """For how many seconds each schedule does."""
    now = timezone.now()
    rows = Schedule.objects.values_list("name", "next_at")
    return {name: (at - now).total_seconds() for name, at in rows}


def owed() -> dict[str, float]:
    """In how many seconds each bucket is full."""
    now = timezone.now()
    rows = Bucket.objects.values_list("limit_key", "full_at")
    return {key: (at - now).total_seconds() for key, at in rows}


@pytest.mark.usefixtures("_schedules")
@pytest.mark.parametrize("has_seen_it", [True, False])
def test_what_a_clock_wrote_that_was_ahead_is_corrected(
    set_clock: Set, own: OwnConnection, has_seen_it: bool
) -> None:
    """By a host that saw it, and by one that starts later."""
    host = Host(own)
    host.round()
    before = waits()
    hold(own, [Hold(jobs.write_weighed.name, None, 3_600)])
    set_clock(DAY)
    host.round()
    assert waits()["often"] > DAY - 60
    assert host.deadlines.seconds_until_read <= 2, "it may be set back soon"
    own.run(spending("tests.ahead"))
    assert owed()["tests.ahead"] > DAY
    own.run(BREAK)
    set_clock(0)
    if not has_seen_it:
        host = Host(own)
    host.round()

    after = waits()
    assert after["often"] <= 1
    assert after["broken"] > DAY - 60
    assert 0 < after["nightly"] <= before["nightly"]
    assert after["rarely"] == pytest.approx(before["rarely"], abs=60)
    assert owed() == {
        "tests.ahead": pytest.approx(5, abs=5),
        jobs.write_weighed.name: pytest.approx(3_600, abs=60),
    }


def test_nothing_is_lost_to_a_clock_that_is_ahead_for_a_while(
    set_clock: Set, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After ten minutes it is believed."""
    host = Host(own)
    pruner, expirer = Pruner(own, host.deadlines), Expirer(own, host.deadlines)
    old = archive(finished_at=timezone.now() - timedelta(days=2))
    waiting = jobs.add.using(expires_in=3_600).enqueue(1)

    def round() -> tuple[bool, bool]:
        for loop in (expirer, pruner):
            host.deadlines.read_at = -1_000.0
            for _ in range(20):
                loop.tick()
        kept = ArchivedJob.objects.filter(pk=old).exists()
        return kept, QueuedJob.objects.filter(pk=waiting.id).exists()

    assert round() == (True, True)
    set_clock(100 * DAY)
    assert round() == (True, True)
    monkeypatch.setattr(deadline_watch, "DOUBTED_FOR", 0.0)
    assert round() == (False, False)


def test_a_host_that_stands_by_believes_no_lease_that_its_own_clock_contradicts(
    set_clock: Set, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one is alive, and renews it soon."""
    held = claimant(f"{STANDBY}main", ttl=60.0)
    assert lease_rows.take(own, held).fence
    config = WorkerConfig(standby="main", standby_token=uuid4())
    table = ProcessTable(1)
    table.standby_is_held = False
    host = Standby(table, own, config)
    host.tick()
    set_clock(3_600)
    host.tick()
    assert not table.standby_is_held
    assert lease_rows.take(own, held).fence  # renewed, by the wrong clock
    host.tick()
    set_clock(7_200)
    host.tick()
    assert not table.standby_is_held
    later = lease_time() + 61.0
    monkeypatch.setattr(standby, "lease_time", lambda: later)
    host.tick()
    assert table.standby_is_held, "it was not renewed by any clock"


def test_buckets_are_set_back_by_a_host_that_saw_nothing_and_workers_ask_again(
    set_clock: Set, own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock_repair, "BUCKETS_EVERY", 0.0)
    host = Host(own)
    host.round()
    set_clock(DAY)
    own.run(spending("tests.ahead"))
    set_clock(0)
    with psycopg.connect(**connection.get_connection_params()) as raw:
        raw.autocommit = True
        raw.execute("LISTEN jobqueue")
        for _ in range(2):  # once is enough
            host.repair.tick()
        assert [each.payload for each in raw.notifies(timeout=0)] == ["t:"]
    assert owed() == {"tests.ahead": pytest.approx(5, abs=5)}


def test_windows_that_were_opened_by_a_clock_that_was_ahead_count_from_now(
    set_clock: Set, own: OwnConnection
) -> None:
    for handler in (jobs.remind, jobs.greet_once):
        handler.enqueue(1)
    set_clock(DAY)
    for name in (jobs.remind.name, jobs.greet_once.name):
        own.run(ENQUEUE, {"job_type": name})
    set_clock(0)
    Host(own).round()
    now = timezone.now()
    rows = list(UniqueWindow.objects.order_by("held_until"))
    lasting = [(row.held_until - now).total_seconds() for row in rows if row.held_until]
    assert lasting == [pytest.approx(300, abs=60)] * 2
    assert all(row.opened_at <= now for row in rows)
    assert len(rows) == 4
    assert not jobs.remind.enqueue(7).is_new


def test_a_spend_and_a_hold_of_a_bucket_that_was_ahead_count_from_now(
    set_clock: Set, own: OwnConnection
) -> None:
    name = jobs.write_weighed.name
    for begin, again in (
        (spending(name), lambda: own.run(spending(name))),
        (spending(name), lambda: hold(own, [Hold(name, None, 8)])),
    ):
        set_clock(DAY)
        own.run(begin)
        set_clock(0)
        again()
        assert 5 < owed()[name] < 20
        Bucket.objects.all().delete()


def spending(key: str) -> str:
    """A statement that spends ten seconds of this bucket."""
    return buckets.SPEND.format(spent=f"(SELECT '{key}'::text, 1e7::float8)")
