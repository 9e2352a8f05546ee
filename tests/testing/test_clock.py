"""A clock that stands until the test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import DataError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from django_jobqueue import get_job
from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import JobType, QueuedJob, Worker
from django_jobqueue.testing import clock, clocks, drain
from tests.support.rows import archived, queued
from tests.testing import jobs

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

pytestmark = pytest.mark.django_db


def ask(statement: str) -> Any:
    """The one value that this statement returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]


@pytest.fixture(params=["in a transaction", "in none"])
def both(request: pytest.FixtureRequest) -> None:
    """With an open transaction, and without."""
    name = "db" if request.param == "in a transaction" else "transactional_db"
    request.getfixturevalue(name)


@pytest.mark.usefixtures("both")
def test_the_database_sees_the_time_and_only_while_it_stands() -> None:
    before = ask("SELECT current_setting('search_path')")
    with clock(NOON) as time:
        for function in ("clock_timestamp", "statement_timestamp", "now"):
            assert ask(f"SELECT {function}()") == NOON
        assert JobType.objects.annotate(now=Now()).first().now == NOON  # type: ignore[union-attr]
        assert time.move(hours=1) == time.now == NOON + HOUR
        assert ask("SELECT now()") == NOON + HOUR
        time.move_to(NOON)
        assert time.move(HOUR) == ask("SELECT now()")
        assert ask("SELECT pg_catalog.now()") < NOON
    assert ask("SELECT current_setting('search_path')") == before
    assert ask("SELECT now()") < NOON
    assert ask("SELECT to_regnamespace('frozen_clock')") is None


@pytest.mark.usefixtures("both")
def test_every_way_to_enqueue_sees_the_time_and_it_moves() -> None:
    with clock(NOON) as time:
        for name in ("anna", "ben"):
            jobs.greet.enqueue(name)
        jobs.greet.using(priority=3).enqueue("carl")
        jobs.greet.enqueue_many([{"name": "dora"}, {"name": "emil"}])
        jobs.before.enqueue()
        assert {(j.run_after, j.created_at) for j in queued()} == {(NOON, NOON)}
        jobs.greet.using(run_after=HOUR).enqueue("fred")
        assert [ran.job.job_type for ran in drain()].count(jobs.after.name) == 1
        assert {(j.run_after, j.created_at) for j in archived()} == {(NOON, NOON)}
        assert {j.finished_at for j in archived()} == {NOON}
        time.move(minutes=59)
        assert drain() == []
        time.move(minutes=1)
        assert len(drain()) == 1


def test_retries_happen_when_they_are_due_and_jobs_expire() -> None:
    with clock(NOON) as time:
        job, urgent = jobs.fail.enqueue(), jobs.urgent.enqueue()
        drain(raise_errors=False, limit=1)
        waiting = get_job(job.id)
        assert waiting.attempts == 1
        assert waiting.run_after > NOON + timedelta(seconds=50)
        time.move_to(NOON + HOUR)
        assert [ran.attempt for ran in drain(raise_errors=False)] == [2]
        over = get_job(urgent.id)
        assert (over.status, over.finished_at) == ("expired", NOON + HOUR)


def test_a_worker_whose_lease_lapsed_is_given_up() -> None:
    with clock(NOON) as time:
        job = jobs.greet.enqueue("anna")
        worker = Worker.objects.create(name="other:1", pid=1, lease_until=NOON + HOUR)
        QueuedJob.objects.filter(id=job.id).update(
            status="running", worker_id=worker.id, fence=1, attempts=1, started_at=NOON
        )
        assert drain() == []
        time.move(hours=1, seconds=1)
        (ran,) = drain()
        assert (ran.verb, ran.job.crashes) == ("succeed", 1)
        worker.refresh_from_db()
        assert worker.state == "lost"


def test_drain_lets_time_pass_and_everything_happens_when_it_is_due() -> None:
    with clock(NOON) as time:
        jobs.fail.enqueue()
        jobs.urgent.using(run_after=timedelta(hours=3)).enqueue()
        jobs.greet.using(run_after=timedelta(days=2)).enqueue("anna")
        ran = drain(until=timedelta(days=1), raise_errors=False)
        assert [one.verb for one in ran] == ["retry", "retry", "fail", "succeed"]
        assert ran[3].job.finished_at == NOON + timedelta(hours=3)
        assert time.now == NOON + timedelta(days=1)
        assert len(drain(until=NOON + timedelta(days=2))) == 1
        assert drain(until=NOON) == []


def test_drain_brings_a_clock_of_its_own() -> None:
    jobs.greet.using(run_after=HOUR).enqueue("anna")
    (ran,) = drain(until=HOUR)
    assert ran.job.started_at is not None
    assert ran.job.started_at > timezone.now() + timedelta(minutes=59)
    assert ask("SELECT now()") < timezone.now() + timedelta(minutes=1)


def test_jobs_that_expire_or_are_paused_do_not_hold_up_the_time() -> None:
    with clock(NOON):
        jobs.urgent.using(expires_at=NOON + 2 * HOUR, run_after=NOON).enqueue()
        name = jobs.greet.name
        jobs.greet.enqueue("anna")
        JobType.objects.filter(name=name).update(
            paused=True, paused_at=NOON, resume_at=NOON + HOUR
        )
        assert [r.job.job_type for r in drain(until=HOUR / 2)] == [jobs.urgent.name]
        assert [r.job.job_type for r in drain(until=HOUR)] == [name]


def test_what_was_prepared_before_sees_the_time_as_well() -> None:
    connection.ensure_connection()
    plain = connection.connection
    for _ in range(3):
        plain.execute("SELECT statement_timestamp()", prepare=True)
    with clock(NOON):
        row = plain.execute("SELECT statement_timestamp()", prepare=True).fetchone()
        assert row == (NOON,)
    assert plain.execute("SELECT statement_timestamp()", prepare=True).fetchone() < (
        NOON,
    )


@pytest.mark.parametrize("without", [(), ("time_machine",)])
def test_python_sees_the_time_through_time_machine_or_freezegun(
    monkeypatch: pytest.MonkeyPatch, without: tuple[str, ...]
) -> None:
    for name in without:
        monkeypatch.setattr(clocks, name, None)
    with clock(NOON) as time:
        assert timezone.now() == NOON
        time.move(hours=1)
        assert timezone.now() == NOON + HOUR
        jobs.greet.enqueue("anna")
        assert len(drain()) == 1
    assert timezone.now() < NOON


def test_neither_is_required_and_python_is_left_alone_if_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with clock(NOON, python=False):
        assert timezone.now() < NOON
    monkeypatch.setattr(clocks, "time_machine", None)
    monkeypatch.setattr(clocks, "freezegun", None)
    with clock(NOON):
        assert timezone.now() < NOON < ask("SELECT now() + interval '1 second'")
    with (
        pytest.raises(ImproperlyConfigured, match="Install time-machine or freezegun"),
        clock(NOON, python=True),
    ):
        pass


def test_a_number_is_no_time_and_moments_have_a_zone() -> None:
    number: Any = 5
    with clock(NOON) as time:
        with pytest.raises(RuntimeError, match="A clock stands already"), clock():
            pass
        with pytest.raises(TypeError, match=r"Write move\(seconds=…\)"):
            time.move(number)
        with pytest.raises(TypeError, match="5 is no moment"):
            time.move_to(number)
        with pytest.raises(ValueError, match="is naive: give it a time zone"):
            time.move_to(datetime(2030, 1, 1))
        with pytest.raises(ValueError, match="is naive: give it a time zone"):
            drain(until=datetime(2030, 1, 1))
        assert time.now == NOON
    with pytest.raises(TypeError, match="5 is no moment"), clock(number):
        pass
    with clock(NOON):
        pass


def test_without_a_moment_it_stands_at_that_of_python() -> None:
    with mock.patch.object(clocks, "datetime", wraps=datetime) as frozen:
        frozen.now.return_value = NOON
        with clock() as time:
            assert time.now == NOON == ask("SELECT now()")


def test_a_broken_transaction_does_not_hide_what_broke_it() -> None:
    with pytest.raises(DataError), transaction.atomic(), clock(NOON):
        ask("SELECT 1 / 0")
    assert ask("SELECT now()") < NOON


def test_after_a_frozen_clock_enqueues_look_at_their_type_again(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "time_machine", None)
    with clock(NOON):
        jobs.greet.enqueue("anna")
    JobType.objects.filter(name=jobs.greet.name).update(priority_override=9)
    assert jobs.greet.enqueue("ben").priority == 9


def test_ids_are_of_the_present_again_when_the_clock_is_gone() -> None:
    pytest.importorskip("time_machine")
    with clock(at=datetime(2040, 1, 1, tzinfo=UTC)):
        future = new_id()
    assert new_id() < future
