"""The transaction of an atomic job is not the handler's to end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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


def test_a_statement_that_would_end_it_is_refused_and_nothing_stays(
    worker: HandDriven, journal: str, then: Callable[..., None]
) -> None:
    for statement in REFUSED:
        then(partial(execute, statement))
        jobs.write_atomic.enqueue(journal, "one")
        worker.turn()
    found = [(job.status, job.attempts) for job in queued()]
    assert found == [("queued", 1)] * len(REFUSED)
    assert not Group.objects.exists()


@pytest.mark.parametrize("end", ENDED)
def test_one_that_ended_it_all_the_same_has_failed_and_is_not_run_again(
    worker: HandDriven, journal: str, end: Callable[[], None], then: Callable[..., None]
) -> None:
    def end_and_fail() -> None:
        end()
        raise ValueError("no such order")

    for number, end_it in enumerate((end, end_and_fail)):
        then(end_it)
        jobs.write_atomic.enqueue(journal, f"group {number}")
        worker.turn()
    for job in archived():
        assert (job.status, job.attempts) == ("failed", 1)
        assert "ended the transaction of its atomic job" in job.error_message
    assert len(archived()) == 2
    assert Group.objects.count() == (0 if end is past_django else 2)


def test_savepoints_are_a_handlers_own(
    worker: HandDriven, journal: str, then: Callable[..., None]
) -> None:
    """And it may go on after a refusal."""

    def use_savepoints() -> None:
        with pytest.raises(TransactionManagementError):
            execute("COMMIT")
        with pytest.raises(IntegrityError), transaction.atomic():
            Group.objects.create(name="one")  # once more
        execute("SAVEPOINT own")
        execute("ROLLBACK TO SAVEPOINT own")

    then(use_savepoints)
    jobs.write_atomic.enqueue(journal, "one")
    worker.work()
    assert [job.status for job in archived()] == ["succeeded"]
    assert [group.name for group in Group.objects.all()] == ["one"]


def test_statements_that_only_look_like_an_end_pass() -> None:
    for statement in (
        "ROLLBACK TO SAVEPOINT a",
        "rollback work to a",
        "ROLLBACK TRANSACTION TO a",
        "SELECT 'COMMIT'",
        "UPDATE commits SET a = 1",
        "DO $$ BEGIN NULL; END $$",
        "-- COMMIT\nSELECT 1",
    ):
        assert ENDS.match(statement) is None
