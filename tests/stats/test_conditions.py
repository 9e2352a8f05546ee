"""The conditions that hold, rule by rule; the overview says the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection
from django.test import override_settings

from django_jobqueue import operations
from django_jobqueue.domain.states import OCCURRENCES, AlertCondition
from django_jobqueue.models import JobType, Worker
from django_jobqueue.stats import conditions
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.reading import old_transactions
from tests.stats.rows import ADD, SAY, ago, concerns, crashed, queued, rollup, worker

LATER = "(statement_timestamp() + interval '2 hours')"

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_schedules")]


def held() -> list[tuple[str, str, str]]:
    """Name, subject and text of each condition."""
    judged = conditions.read(DjangoDatabase()).conditions
    return [(str(one.name), one.subject, one.text) for one in judged]


def test_an_old_backlog_is_one_condition_for_each_queue() -> None:
    worker()
    queued(2, queue="mail", run_after=ago(minutes=10))
    queued(1, queue="mail", job_type_id=SAY, run_after=ago(hours=2))
    queued(1, queue="paused", run_after=ago(hours=2))
    queued(1, queue="quick", run_after=ago(minutes=4))
    operations.pause(["paused"], queues=True, by="anna")
    text = "3 jobs are ready in queue mail; the oldest has waited for 2 h 00 m."
    assert held() == [("backlog", "mail", text)]
    with override_settings(JOBQUEUE={"ALERT_WAIT": 3 * 3_600}):
        assert held() == []
    for number in range(7):  # every queue is judged, however many there are
        queued(queue=f"mail-{number}", run_after=ago(hours=1))
    assert len(held()) == 8


def test_jobs_that_no_worker_would_claim_are_unserved() -> None:
    worker(queues=["mail"], job_types=[ADD])
    worker("web-2:1", queues=["night"], job_types=[SAY])
    queued(queue="day")
    JobType.objects.create(name="shop.unknown")
    queued(queue="mail", job_type_id="shop.unknown")
    queued(queue="mail", job_type_id=SAY)
    assert [one[:2] for one in held()] == [
        ("unserved", "day"),
        ("unserved", "shop.unknown"),
        ("unserved", f"{SAY} in mail"),
    ]
    Worker.objects.all().delete()  # then that is the only condition
    worker(lease_until=ago(minutes=1))
    worker("web-1:2", state="draining")
    assert [one[:2] for one in held()] == [("no_worker", "")]
    text = Path(conditions.__file__).read_text()
    for condition in set(AlertCondition) - set(OCCURRENCES):
        assert f"AlertCondition.{condition.name}" in text


def test_job_types_that_fail_or_crash_too_often() -> None:
    worker()
    queued(5)
    rollup(ago(minutes=5), succeeded=1_000, failed=1)
    crashed(2, "shop.few", minutes=1)
    crashed(9, "shop.old", hours=3)
    assert held() == []
    rollup(ago(minutes=5), SAY, succeeded=16, failed=4)
    crashed(3, minutes=1)
    crashed(9, state="ignored", minutes=1)
    failing = (
        f"20.0 % of the 20 jobs of type {SAY} that finished in the last hour failed."
    )
    crashing = (
        f"3 workers died within the last two hours while jobs of type {ADD} ran. "
        "Whether one of them caused it is unknown."
    )
    expected = [("failing", SAY, failing), ("crashing", ADD, crashing)]
    assert held() == expected
    assert [(one.code, one.message) for one in concerns() if one.is_bad] == [
        (code, text) for code, _subject, text in expected
    ]


@pytest.fixture
def transaction(transactional_db: None) -> Iterator[OwnConnection]:
    """A session with a transaction that has written something."""
    own = OwnConnection("reports")
    with own.transaction() as db:
        db.run("SELECT pg_current_xact_id()")
        yield own
    own.close()


def test_an_old_transaction_is_a_condition_and_a_concern(
    transaction: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker()
    assert held() == []
    oldest = old_transactions.oldest(DjangoDatabase())
    assert oldest is not None
    assert (oldest.name, oldest.state) == ("jobqueue reports", "idle in transaction")
    statement = old_transactions.OLDEST.replace("statement_timestamp()", LATER)
    monkeypatch.setattr(old_transactions, "OLDEST", statement)
    text = (
        f"A transaction has been open for 2 h 00 m: process {oldest.pid} of "
        "PostgreSQL, jobqueue reports, idle in transaction. Until it ends, PostgreSQL "
        "cannot remove dead rows, and claims become slower."
    )
    assert held() == [("old_transaction", "", text)]
    assert ("old_transaction", text) in [(one.code, one.message) for one in concerns()]
    with override_settings(JOBQUEUE={"ALERT_TRANSACTION": 3 * 3_600}):
        assert held() == []


def test_a_transaction_that_keeps_nothing_and_our_own_are_not_old() -> None:
    """This test's has neither written nor a snapshot between its statements."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned()")
    oldest = old_transactions.oldest(DjangoDatabase())
    assert oldest is None or oldest.age < 3_600
