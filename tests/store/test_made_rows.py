"""Three statements make a row of what its job type says: an enqueue with its code, the
trigger that fills rows of plain SQL, and the one that enqueues followers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import IntegrityError, connection, transaction
from psycopg.types.json import Jsonb

from django_jobqueue import Handler
from django_jobqueue.models import KeyLimit, QueuedJob, UniqueWindow
from tests.pairwise import pairwise
from tests.sample import jobs
from tests.store.rows import job_type, make
from tests.support.rows import queued
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

TAKER = "some.taker"
DATA = {"status": "succeeded"}  # what a follower gets that takes nothing else
BY: dict[str, Any] = {"by": ["status"], "defaults": {}}
TYPES: dict[str, tuple[Any, ...]] = {
    "until": (None, "finished", "started", "settled", "300", "forever"),
    "limit": (None, "status", ""),  # the parameter of its key
    "expires_in": (None, timedelta(hours=1)),
    "queue": ("mail", "default"),
    "priority_override": (None, 9),
    "follower": (None, "tests.sample.add"),
}


def insert(job_type: str, data: Any) -> UUID | None:
    """By plain SQL; None if it is left out."""
    statement = (
        "INSERT INTO jobqueue_queuedjob (job_type, data) VALUES (%s, %s) RETURNING id"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [job_type, Jsonb(data)])
        row = cursor.fetchone()
    return row and row[0]


def follow() -> UUID | None:
    """As a follower of a job that ends."""
    before = make(followers={"on_success": [TAKER]})
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH gone AS (DELETE FROM jobqueue_queuedjob WHERE id = %s RETURNING *) "
            "INSERT INTO jobqueue_archivedjob (id, job_type, followers, status) "
            "SELECT id, job_type, followers, 'succeeded' FROM gone",
            [before],
        )
    return QueuedJob.objects.filter(follows=before).values_list("pk", flat=True).first()


def made(id: UUID | None) -> dict[str, Any]:
    """What the type decides of a row, and the window that it opens."""
    assert id is not None
    (row,) = queued(id=id)
    window = UniqueWindow.objects.first()
    return {
        "data": row.data,
        "queue": row.queue,
        "priority": row.priority,
        "waits": round((row.run_after - row.created_at).total_seconds()),
        "lives": row.expires_at and row.expires_at - row.run_after,
        "followers": row.followers,
        "unique_key": row.unique_key,
        "unique_until_started": row.unique_until_started,
        "limit_key": row.limit_key,
        "weight": row.weight,
        "window": window and window.key,
        "is_its_own": window and window.job_id == id,
        "closes": window
        and window.held_until
        and round((window.held_until - row.created_at).total_seconds()),
    }


@pytest.mark.dear
def test_a_follower_and_a_row_of_plain_sql_are_made_alike() -> None:
    KeyLimit.objects.create(name="taker")

    @undone()
    def check(
        until: str | None,
        limit: str | None,
        follower: str | None,
        **columns: Any,
    ) -> None:
        debounce = None
        if until == "settled":
            until, debounce = "started", 30
        by = {"name": "taker", "by": [limit] if limit else [], "defaults": {}}
        job_type(
            TAKER,
            unique_rule=until and {**BY, "until": until, "debounce": debounce},
            limit_rule=None if limit is None else by,
            limit_name=None if limit is None else "taker",
            followers=follower and {"on_failure": [follower]},
            follower_arguments=["status"],
            **columns,
        )
        wanted = made(insert(TAKER, DATA))
        try:
            with transaction.atomic():
                assert (insert(TAKER, DATA) is None) is (until in ("300", "forever"))
        except IntegrityError:
            assert until in ("finished", "started")
        QueuedJob.objects.all().delete()
        UniqueWindow.objects.all().delete()
        assert made(follow()) == wanted
        assert (follow() is None) is (until is not None)

    def check_case(case: dict[str, Any]) -> None:
        check(**case)

    check_each(check_case, [(case,) for case in pairwise(TYPES)], least=15)


HANDLERS: list[tuple[Handler[..., Any], dict[str, Any]]] = [
    (jobs.write_keyed, {"journal": "x", "key": None}),
    (jobs.write_keyed, {"journal": "x", "key": "ü" * 150}),
    (jobs.write_keyed, {"journal": "x", "key": 7}),
    (jobs.count_keyed, {}),
    (jobs.write_weighed, {"journal": "x"}),
    (jobs.add_alone, {"a": 1}),
    (jobs.settle, {"document": 7, "why": "x"}),
    (jobs.remind, {"user": 7}),
    (jobs.greet_once, {"user": 7}),
    (jobs.index, {"document": 7}),
    (jobs.with_all_options, {"a": {"x": [1, None]}}),
]


def test_a_row_of_plain_sql_and_an_enqueue_are_made_alike() -> None:
    @undone()
    def check(handler: Handler[..., Any], data: dict[str, Any]) -> None:
        wanted = made(handler.enqueue(**data).id)
        QueuedJob.objects.all().delete()
        UniqueWindow.objects.all().delete()
        assert made(insert(handler.name, data)) == wanted

    check_each(check, HANDLERS, least=11)


def test_who_takes_a_window_that_is_over_opens_it_anew() -> None:
    job_type(TAKER, unique_rule={**BY, "until": "300"}, follower_arguments=["status"])
    user = {"user": 7}
    for make_next in (
        lambda: jobs.remind.enqueue(**user),
        lambda: jobs.remind.enqueue_many([user]),
        lambda: insert(jobs.remind.name, user),
        follow,
    ):
        make_next()
        first = UniqueWindow.objects.get()
        past = first.opened_at - timedelta(hours=1)
        UniqueWindow.objects.update(opened_at=past, held_until=past)
        make_next()
        again = UniqueWindow.objects.get()
        assert (again.key, again.opened_at >= first.opened_at) == (first.key, True)
        UniqueWindow.objects.all().delete()
