"""The transaction of an atomic job is not the handler's to end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from django_jobqueue.execution.transaction_guard import ENDS
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

REFUSED = ["COMMIT", "rollback", "END", "abort;", "/* so */ COMMIT AND CHAIN"]


def execute(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def swallow() -> None:
    with pytest.raises(TransactionManagementError):
        execute("COMMIT")


def in_the_middle() -> None:
    execute("SELECT 1; COMMIT")


def past_django() -> None:
    connection.connection.rollback()


def past_django_and_on() -> None:
    connection.connection.commit()
    Group.objects.count()


ENDED = [in_the_middle, past_django, past_django_and_on]


@pytest.fixture
def then(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Have a job write a group, and then do this."""

    def say(do: Callable[[], None]) -> None:
        def note(journal: str, *words: object) -> None:
            do()

        monkeypatch.setattr(jobs, "note", note)

    return say


@pytest.mark.parametrize("statement", REFUSED)
def test_a_statement_that_would_end_it_is_refused_and_nothing_stays(
    worker: HandDriven, journal: str, statement: str, then: Callable[..., None]
) -> None:
    then(lambda: execute(statement))
    jobs.write_atomic.enqueue(journal, "one")
    worker.claim()
    worker.run()
    worker.finish()
    (job,) = queued()
    assert (job.status, job.attempts) == ("queued", 1)
    assert not Group.objects.exists()


def test_a_handler_may_go_on_after_the_refusal(
    worker: HandDriven, journal: str, then: Callable[..., None]
) -> None:
    then(swallow)
    jobs.write_atomic.enqueue(journal, "one")
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]
    assert Group.objects.count() == 1


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("end", ENDED)
def test_one_that_ended_it_all_the_same_has_failed_and_is_not_run_again(
    worker: HandDriven,
    journal: str,
    end: Callable[[], None],
    then: Callable[..., None],
    *,
    fails: bool,
) -> None:
    def end_it() -> None:
        end()
        if fails:
            raise ValueError("no such order")

    then(end_it)
    jobs.write_atomic.enqueue(journal, "one")
    worker.work()
    (job,) = archived()
    assert (job.status, job.attempts) == ("failed", 1)
    assert "ended the transaction of its atomic job" in job.error_message
    assert Group.objects.count() == (0 if end is past_django else 1)


def test_savepoints_are_a_handlers_own(
    worker: HandDriven, journal: str, then: Callable[..., None]
) -> None:
    def use_savepoints() -> None:
        with pytest.raises(IntegrityError), transaction.atomic():
            Group.objects.create(name="one")  # once more
        with connection.cursor() as cursor:
            cursor.execute("SAVEPOINT own")
            cursor.execute("ROLLBACK TO SAVEPOINT own")

    then(use_savepoints)
    jobs.write_atomic.enqueue(journal, "one")
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]
    assert [group.name for group in Group.objects.all()] == ["one"]


@pytest.mark.parametrize(
    "statement",
    [
        "ROLLBACK TO SAVEPOINT a",
        "rollback work to a",
        "ROLLBACK TRANSACTION TO a",
        "SELECT 'COMMIT'",
        "UPDATE commits SET a = 1",
        "DO $$ BEGIN NULL; END $$",
        "-- COMMIT\nSELECT 1",
    ],
)
def test_statements_that_only_look_like_an_end_pass(statement: str) -> None:
    assert ENDS.match(statement) is None
