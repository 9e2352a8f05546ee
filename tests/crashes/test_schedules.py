"""Eight hosts fire schedules over nine days with both changes of clocks, and are killed
and stopped meanwhile: each moment is fired once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from django.db import connection

from django_jobqueue import operations
from django_jobqueue.domain.registry import autodiscover
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.scheduler import Scheduler
from django_jobqueue.models import Firing, QueuedJob, Schedule
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.domain.test_schedule_rules import oracle
from tests.sample import jobs
from tests.support.commands import Process, start_code
from tests.support.waiting import eventually

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

HOSTS = 4
SECONDS = 8.0  # that nine days last
BEGIN = datetime(2026, 3, 28, tzinfo=UTC)
END = datetime(2026, 4, 6, tzinfo=UTC)
SPEED = (END - BEGIN).total_seconds() / SECONDS
FUNCTIONS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")
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
def let_time_pass(transactional_db: None) -> Iterator[Callable[[], None]]:
    """The clock of sessions that begin now stands at BEGIN; when this is called, it
    runs SPEED times as fast."""
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA fast_clock")
        cursor.execute("CREATE TABLE fast_clock.began (at timestamptz)")
        cursor.execute(
            "INSERT INTO fast_clock.began SELECT pg_catalog.now() + interval '1 day'"
        )
        for function in FUNCTIONS:
            cursor.execute(
                f"CREATE FUNCTION fast_clock.{function}() RETURNS timestamptz VOLATILE "
                f"LANGUAGE sql AS $$ SELECT timestamptz '{BEGIN.isoformat()}' + {SPEED}"
                " * greatest(interval '0', pg_catalog.clock_timestamp() - at)"
                " FROM fast_clock.began $$"
            )
        path = "public, fast_clock, pg_catalog"
        cursor.execute(f'ALTER DATABASE "{name}" SET search_path = {path}')

        def start() -> None:
            cursor.execute(
                "UPDATE fast_clock.began SET at = pg_catalog.clock_timestamp()"
            )

        yield start
        cursor.execute(f'ALTER DATABASE "{name}" RESET search_path')
        cursor.execute("DROP SCHEMA fast_clock CASCADE")


class Hosts:
    """Processes that fire; any of them may be killed, stopped or continued."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._all = [self._start() for _ in range(HOSTS)]
        self.kills = self.stops = 0

    def disturb(self, chance: random.Random) -> None:
        """Kill one and start another, or stop one for a while."""
        number = chance.randrange(HOSTS)
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
            f"from tests.crashes.test_schedules import fire; fire({SPEED})",
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


def test_each_moment_is_fired_once_whatever_happens_to_the_hosts(
    let_time_pass: Callable[[], None], tmp_path: Path
) -> None:
    Schedule.objects.all().delete()  # the shop's
    jobs.add.enqueue(0)
    QueuedJob.objects.all().delete()
    for expression, zone in RULES:
        operations.schedules.create(
            f"{expression} {zone}".replace(" ", "_"),
            jobs.add.name,
            rule=expression,
            time_zone=zone,
            data={"a": 1},
            missed="all",
            missed_within=timedelta(days=30),
            missed_most=1_000,
        )
    hosts, chance = Hosts(tmp_path / "hosts.log"), random.Random(7)
    try:
        unplanned = Schedule.objects.filter(planned_for="")
        eventually(lambda: not unplanned.exists(), within=60)
        let_time_pass()
        began = time.monotonic()
        while time.monotonic() - began < SECONDS:
            hosts.disturb(chance)
        over = Firing.objects.filter(fires_at__gt=END).values("schedule").distinct()
        eventually(lambda: over.count() == len(RULES), within=60)
    finally:
        hosts.end()
    assert hosts.kills > 5
    assert hosts.stops > 5
    for expression, zone in RULES:
        name = f"{expression} {zone}".replace(" ", "_")
        fired = [f.fires_at for f in Firing.objects.filter(schedule=name)]
        expected = oracle(expression, ZoneInfo(zone), BEGIN, END)
        assert sorted(moment for moment in fired if moment <= END) == list(expected)
    made = QueuedJob.objects.values_list("metadata__schedule", "metadata__fires_at")
    assert len(made) == len(set(made)) == Firing.objects.count() > 1_500
