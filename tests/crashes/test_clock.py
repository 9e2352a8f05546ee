"""The database's clock is set, beside real processes; leases are judged by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from django_jobqueue.conf import conf
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.rescuer import Rescuer
from django_jobqueue.models import Failure, Worker
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.crashes.seen import all_archived, starts
from tests.sample import jobs
from tests.store.rows import register
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.selection import some_slow
from tests.support.waiting import eventually

pytestmark = pytest.mark.processes

Run = Callable[..., RunWorkers]
Set = Callable[[float], None]
FUNCTIONS = ("clock_timestamp", "statement_timestamp", "transaction_timestamp", "now")


@pytest.fixture
def set_clock(transactional_db: None) -> Iterator[Set]:
    """Set the clock that new sessions of this database see: ``set_clock(3600)``.

    It is to be asked for before workers are, so that they have ended when it is taken
    away.
    """
    name = connection.settings_dict["NAME"]
    with connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA set_clock")
        cursor.execute("CREATE TABLE set_clock.ahead (by interval)")
        cursor.execute("INSERT INTO set_clock.ahead VALUES ('0 s')")
        for function in FUNCTIONS:
            cursor.execute(
                f"CREATE FUNCTION set_clock.{function}() RETURNS timestamptz STABLE "
                f"LANGUAGE sql AS 'SELECT pg_catalog.{function}() + by "
                "FROM set_clock.ahead'"
            )
        cursor.execute(
            f'ALTER DATABASE "{name}" SET search_path = public, set_clock, pg_catalog'
        )

        def set_by(seconds: float) -> None:
            cursor.execute(
                "UPDATE set_clock.ahead SET by = %s * interval '1 s'", [seconds]
            )

        yield set_by
        cursor.execute(f'ALTER DATABASE "{name}" RESET search_path')
        cursor.execute("DROP SCHEMA set_clock CASCADE")


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
    for days in (1, 2, 3):
        set_clock(days * 86_400)
        eventually(all_have_renewed(2))
    for word in "xy":
        jobs.give_leave(journal, word)

    eventually(all_archived(2))
    assert starts(journal) == {"x": 1, "y": 1}
    assert [job.crashes for job in archived()] == [0, 0]
    assert not Failure.objects.exists()
    assert not Worker.objects.filter(state="lost").exists()


def test_a_rescuer_that_sees_the_clock_being_set_waits_until_all_have_renewed(
    set_clock: Set,
    own: OwnConnection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = register(own, lease=conf.lease)
    made = Rescuer(
        own,
        DeadlineWatch(own, WorkerConfig()),
        on_quarantined=lambda at: None,
        on_recovered=lambda n: None,
    )
    made._patient_until = 0.0  # private: no outage was before
    made.tick()
    set_clock(60)
    assert made.tick() > conf.lease / 2
    assert Worker.objects.get(id=worker).state == "running"
    assert "The database's clock was set forward by" in caplog.text
    later = time.monotonic() + 1_000
    monkeypatch.setattr(
        "django_jobqueue.host.maintenance.rescuer.time.monotonic", lambda: later
    )
    made.tick()
    assert Worker.objects.get(id=worker).state == "lost"


@pytest.mark.parametrize("seconds", some_slow([3_600, -3_600], [-3_600]))
def test_a_host_that_is_lost_is_taken_over_after_the_clock_was_set(
    set_clock: Set, runworkers: Run, journal: str, seconds: int
) -> None:
    """Set back, its lease would hold for an hour more."""
    lost = runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST="lost")
    lost.started()
    jobs.linger.enqueue(journal, "a")
    eventually(lambda: starts(journal))
    other = runworkers("--threads", "1", "--lease", "2", SAMPLE_HOST="other")
    other.started()
    lost.close()
    set_clock(seconds)

    eventually(lambda: queued(crashes=1) or archived(crashes=1), within=60)
    assert Worker.objects.filter(host="lost").get().state == "lost"
