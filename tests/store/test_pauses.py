"""Whether a job type or a queue is paused is stated in many statements: they agree on
each state of both."""

from __future__ import annotations

from datetime import datetime
from itertools import product
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.contrib.http.job_objects import job_type_object
from django_jobqueue.models import JobType, Queue, QueuedJob, Worker
from django_jobqueue.stats import current_state
from django_jobqueue.stats.pauses import in_force, is_paused
from django_jobqueue.stats.why_not_running import why_not
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.queue import claim
from django_jobqueue.store.reading import stats
from tests.store.rows import ADD, ago, job_type, lane, make, register
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

STATES = ("no", "for good", "until then", "is over")
LASTS = {"for good", "until then"}


def pause(state: str) -> dict[str, Any]:
    """The columns of a pause."""
    ends: dict[str, datetime] = {"until then": ago(-3_600), "is over": ago(1)}
    return {"paused": state != "no", "resume_at": ends.get(state)}


@pytest.mark.dear
def test_a_pause_is_in_force_wherever_it_is_asked_for() -> None:
    db = DjangoDatabase()
    worker = register(db, job_types=[ADD])

    @undone()
    def check(of_type: str, of_queue: str) -> None:
        job_type(ADD, **pause(of_type))
        Queue.objects.create(name="mail", **pause(of_queue))
        id = make(queue="mail")
        of_types, of_queues = of_type in LASTS, of_queue in LASTS
        row, queue = JobType.objects.get(pk=ADD), Queue.objects.get(pk="mail")

        assert (is_paused(row), is_paused(queue)) == (of_types, of_queues)
        assert job_type_object(row).is_paused is of_types
        paused = {("job type", ADD)} if of_types else set[tuple[str, str]]()
        paused |= {("queue", "mail")} if of_queues else set()
        assert {(one.what, one.name) for one in stats.paused(db)} == paused
        for model, lasts in ((JobType, of_types), (Queue, of_queues)):
            assert model._default_manager.filter(in_force()).exists() is lasts
        assert bool(current_state.unpaused(current_state.read(db))) is not bool(paused)
        with connection.cursor() as cursor:
            cursor.execute("SELECT jobqueue_wanted_slots('mail')")
            assert cursor.fetchone() == (0 if paused else 1,)
        reasons = why_not(
            QueuedJob.objects.all(),
            types={ADD: row},
            queues={"mail": queue},
            workers=Worker.objects.all(),
        )
        is_next = reasons[id] == ["it is about to be claimed"]
        assert is_next is not bool(paused)
        claimed = claim.claim(db, worker, [lane(queue="mail")], 1)
        assert [job.id for job in claimed] == ([] if paused else [id])

    check_each(check, product(STATES, STATES), least=16)


def test_a_type_without_slots_is_told_unless_it_is_paused() -> None:
    @undone()
    def check(state: str) -> None:
        job_type(ADD, concurrency=0, **pause(state))
        told = stats.without_slots(DjangoDatabase())
        assert (ADD in told) is (state not in LASTS)

    check_each(check, [(state,) for state in STATES])
