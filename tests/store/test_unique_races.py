"""Fifty callers, and the worker among them: one job of a key, and the last data win."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from django_jobqueue.domain.ids import new_id
from django_jobqueue.models import QueuedJob, UniqueWindow
from django_jobqueue.store.connection import DjangoDatabase, OwnConnection
from django_jobqueue.store.control import prune
from django_jobqueue.store.queue import claim, insert_replace, insert_unique
from django_jobqueue.store.queue.insert import Inserted
from django_jobqueue.store.queue.new_job import NewJob
from tests.sample import jobs
from tests.store.meanwhile import (
    Background,
    Hearing,
    open_transaction,
    together,
    until_waiting,
)
from tests.store.rows import ADD, ago, claimed, lane, register

pytestmark = pytest.mark.django_db(transaction=True)

KEY = UUID(int=7)
CALLERS = 24
MINUTE = timedelta(minutes=1)
REPLACING: dict[str, Any] = {
    "unique_key": KEY,
    "unique_until_started": True,
    "replaces": True,
}
DEBOUNCED: dict[str, Any] = {**REPLACING, "moves": True, "delay": MINUTE}
IN_WINDOW: dict[str, Any] = {
    "unique_key": KEY,
    "unique_window": True,
    "unique_for": MINUTE,
}
KINDS = {"replaced": REPLACING, "debounced": DEBOUNCED, "window": IN_WINDOW}


def put(a: int, kind: dict[str, Any]) -> Inserted:
    """Enqueue this number."""
    new, text = NewJob(job_type=ADD, **kind), f'{{"a": {a}}}'
    inserted = insert_unique.insert_unique(
        DjangoDatabase(), new, new_id(), {"a": a}, text, own_id=False
    )
    assert inserted is not None
    return inserted


def put_many(keys: list[UUID], kind: dict[str, Any]) -> insert_unique.ManyInserted:
    """Enqueue a job for each of these keys, in one transaction."""
    calls = {key: (new_id(), f'{{"a": {key.int}}}') for key in keys}
    new = NewJob(job_type=ADD, **{**kind, "unique_key": None})
    with transaction.atomic():
        many = insert_unique.insert_many_unique(DjangoDatabase(), new, calls)
    assert many is not None
    return many


@dataclass
class Call:
    """A call, and when it was under way."""

    number: int
    start: float
    end: float = 0.0
    inserted: Inserted | None = None


def call(number: int, kind: dict[str, Any]) -> Call:
    made = Call(number, time.monotonic())
    made.inserted = put(number, kind)
    made.end = time.monotonic()
    return made


def test_many_callers_make_one_job_with_the_last_data() -> None:
    for kind in (REPLACING, DEBOUNCED):
        QueuedJob.objects.all().delete()
        calls = together([partial(call, number, kind) for number in range(CALLERS)])
        (held,) = QueuedJob.objects.all()
        assert {one.inserted.job.id for one in calls} == {held.id}
        assert sum(one.inserted.is_new for one in calls) == 1
        assert all(one.inserted.is_new != one.inserted.job.is_replaced for one in calls)
        winner = next(one for one in calls if one.number == held.data["a"])
        assert all(one.start < winner.end for one in calls)
        assert held.run_after in {one.inserted.job.run_after for one in calls}


def test_many_callers_come_through_a_window_once() -> None:
    for _held in ("never", "once"):
        inserted = together([partial(put, n, IN_WINDOW) for n in range(CALLERS)])
        (job,) = QueuedJob.objects.all()
        assert {one.job.id for one in inserted} == {job.id}
        assert sum(one.is_new for one in inserted) == 1
        assert UniqueWindow.objects.get().job_id == job.id
        QueuedJob.objects.all().delete()
        UniqueWindow.objects.update(held_until=timezone.now())


def test_bulk_enqueues_of_the_same_keys_wait_and_do_not_deadlock() -> None:
    keys = [UUID(int=number) for number in range(1, 600)]
    orders = (keys, keys[::-1]) * 2
    for kind in KINDS.values():
        QueuedJob.objects.all().delete()
        many = together([partial(put_many, order, kind) for order in orders])
        assert QueuedJob.objects.count() == len(keys)
        there = [len(one.existing) + len(one.replaced) for one in many]
        assert sorted(there) == [0, *[len(keys)] * 3]
        UniqueWindow.objects.all().delete()


def test_no_call_is_lost_while_a_worker_claims(own: OwnConnection, holder: int) -> None:
    """After each call there is a claim of its data, or of data of a call that ended
    after it began."""
    taken: list[int] = []
    over = Event()

    def claim_due() -> None:
        for job in claim.claim(own, holder, [lane()], 100):
            taken.append(json.loads(job.data)["a"])

    def claim_meanwhile() -> list[Call]:
        while not over.is_set():
            claim_due()
        return []

    def caller(first: int) -> list[Call]:
        return [call(number, REPLACING) for number in range(first, first + 10)]

    def callers() -> list[Call]:
        try:
            some = together([partial(caller, 10 * n) for n in range(CALLERS)])
            return [one for calls in some for one in calls]
        finally:
            over.set()

    calls, _ = together([callers, claim_meanwhile])
    claim_due()

    assert not QueuedJob.objects.filter(status="queued").exists()
    ends = [one.end for one in calls if one.number in taken]
    assert all(any(end >= one.start for end in ends) for one in calls)
    assert sum(one.inserted.is_new for one in calls if one.inserted) == len(taken)
    assert len(taken) > 1


@pytest.mark.parametrize("undone", [True, False])
def test_a_replacement_waits_for_the_claim_and_makes_another_job_unless_it_is_undone(
    other: OwnConnection, holder: int, background: Background, undone: bool
) -> None:
    first = put(1, REPLACING)
    with open_transaction(other, undone=undone) as claiming:
        assert len(claim.claim(claiming, holder, [lane()], 1)) == 1
        future = background(partial(put, 2, REPLACING))
        until_waiting()
    second = future.result(30)
    assert second.is_new is not undone
    assert (second.job.id == first.job.id) is undone
    assert QueuedJob.objects.get(id=second.job.id).data == {"a": 2}


def test_a_claim_leaves_a_job_whose_data_are_being_replaced_until_the_commit(
    own: OwnConnection, holder: int, ear: Hearing
) -> None:
    put(1, REPLACING)
    with transaction.atomic():
        put(2, REPLACING)
        assert claim.claim(own, holder, [lane()], 1) == []
        ear.heard()
    assert ear.heard() == ["b:default"]
    assert [job.data for job in claimed(own, holder)] == ['{"a": 2}']


def test_a_debounce_that_only_puts_off_is_no_news(ear: Hearing) -> None:
    put(1, DEBOUNCED)
    ear.heard()
    put(2, DEBOUNCED)
    assert ear.heard() == []
    put(3, {**DEBOUNCED, "delay": timedelta(seconds=5)})
    assert ear.heard() == ["b:default"]


def test_an_idle_worker_is_notified_of_a_new_job_and_not_of_a_replacement(
    own: OwnConnection, ear: Hearing
) -> None:
    register(own)
    own.run("UPDATE jobqueue_worker SET listening = true")
    insert_replace._known.clear()  # private: time would have to pass
    jobs.settle.enqueue(1)
    assert ear.heard() == ["q:default"]
    jobs.settle.enqueue(1)
    assert ear.heard() == []
    with transaction.atomic():
        jobs.settle.enqueue(1)
        jobs.settle.enqueue(2)
    assert ear.heard() == ["q:default"]


def test_a_job_beside_a_replaced_one_is_announced(own: OwnConnection) -> None:
    """A replaced job announces nothing, so the next new one of its lane must."""
    put(1, REPLACING)
    with transaction.atomic():
        put(2, REPLACING)
        put(3, {**REPLACING, "unique_key": UUID(int=8)})
    assert list(QueuedJob.objects.order_by("id").values_list("announce", flat=True))[1]


def test_a_follower_that_nobody_declares_takes_no_key() -> None:
    for kind in KINDS.values():
        new = NewJob(
            job_type=ADD,
            followers='{"on_complete": ["nobody.knows"]}',
            follower_types=["nobody.knows"],
            **kind,
        )
        put_it = partial(insert_unique.insert_unique, DjangoDatabase(), new, new_id())
        assert put_it({}, "{}", own_id=False) is None
    assert not UniqueWindow.objects.exists()


def test_windows_that_are_over_are_closed_in_batches(
    own: OwnConnection, other: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def window(until: datetime | None) -> UUID:
        key: UUID = UniqueWindow.objects.create(
            key=new_id(), job_id=new_id(), held_until=until
        ).key
        return key

    monkeypatch.setattr(prune, "BATCH", 2)
    for _ in range(5):
        window(ago(1))
    kept = {window(ago(-60)), window(None)}

    full = [prune.close_windows(own) for _ in range(4)]

    assert full == [True, True, False, False]
    kept.add(taken := window(ago(1)))
    with open_transaction(other) as taking:
        change = (
            "UPDATE jobqueue_uniquewindow SET held_until = NULL WHERE key = %(key)s"
        )
        taking.run(change, {"key": taken})
        assert not prune.close_windows(own)
    assert {row.key for row in UniqueWindow.objects.all()} == kept
