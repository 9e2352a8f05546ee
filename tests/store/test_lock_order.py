"""Statements that lock several rows take them in key order, so that two never wait for
each other in a ring."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from django_jobqueue.contrib.remote import endpoint_rows
from django_jobqueue.contrib.remote.endpoint_answers import (
    EndpointAnswer,
    EndpointAnswers,
)
from django_jobqueue.models import BulkOperation, FailureGroup, QueuedJob, Worker
from django_jobqueue.operations import bulk
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import failure_groups
from tests.store.meanwhile import Background, open_transaction, until_waiting
from tests.store.rows import ADD

FIRST, SECOND = UUID(int=1), UUID(int=2)
Change = Callable[[], object]


def _groups() -> tuple[str, str, Change]:
    for fingerprint in (SECOND, FIRST):  # the table has them the other way round
        FailureGroup.objects.create(
            fingerprint=fingerprint, coarse=fingerprint, error_class="ValueError"
        )
    both = [SECOND, FIRST]
    return (
        "jobqueue_failuregroup",
        "fingerprint",
        lambda: failure_groups.note(DjangoDatabase(), both, text="seen", by="anna"),
    )


def _cancelled() -> tuple[str, str, Change]:
    for id in (SECOND, FIRST):
        QueuedJob.objects.create(id=id, job_type_id=ADD, queue="a")
    made = bulk.draft("cancel", Selection(Table.QUEUED, (Term("queue", "a"),)))
    assert bulk.start(made.id)
    return "jobqueue_queuedjob", "id", lambda: bulk.WORK.do_chunk(made.id, max_rows=10)


@pytest.mark.parametrize("scene", [_groups, _cancelled])
def test_who_waits_for_the_first_row_holds_none_that_comes_later(
    own: OwnConnection,
    background: Background,
    scene: Callable[[], tuple[str, str, Change]],
) -> None:
    table, key, change = scene()
    lock = f"SELECT FROM {table} WHERE {key} = %(key)s FOR UPDATE NOWAIT"
    with open_transaction(own) as transaction:
        transaction.fetch(lock, {"key": FIRST})
        changing = background(change)
        until_waiting()
        transaction.fetch(lock, {"key": SECOND})  # at once, or it is an error
    changing.result(30)
    assert not BulkOperation.objects.exclude(changed=2).exists()


def test_answers_of_endpoints_are_added_in_the_order_of_their_names(
    own: OwnConnection, background: Background
) -> None:
    answers = EndpointAnswers()
    for name in ("second", "first"):  # the table has them the other way round
        Worker.objects.create(name=name, host="", pid=0, state="endpoint")
        answers.add(name, EndpointAnswer.of_status(200, 0.1))
    taken = answers.take()
    lock = "SELECT FROM jobqueue_worker WHERE name = %(name)s FOR UPDATE NOWAIT"
    other = EndpointAnswers()
    other.add("first", EndpointAnswer.of_status(500, 0.1))
    with open_transaction(own) as transaction:
        endpoint_rows.add_answers(transaction, other.take(), "web-1:1")
        adding = background(
            lambda: endpoint_rows.add_answers(DjangoDatabase(), taken, "web-2:2")
        )
        until_waiting()
        transaction.fetch(lock, {"name": "second"})  # at once, or it is an error
    adding.result(30)
    row = Worker.objects.get(name="first").answers
    assert [sum(each) for each in zip(*row["minutes"].values(), strict=True)] == [2, 1]
    assert row["last_failure"]["worker"] == "web-1:1"
