"""Workers: registered, renewed, given up, asked, forgotten."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.worker_rows import Beat
from tests.store.meanwhile import Background, Hearing, open_transaction, until_waiting
from tests.store.rows import ADD, ago, claimed, make_many, register

LEASE = 15.0


def beat(id: int, *, running: int = 0, rss: int = 0, draining: bool = False) -> Beat:
    """What a supervisor says of a living worker."""
    return Beat(id, running, rss, draining)


def lapse(*ids: int) -> None:
    """Let the leases of these workers have ended."""
    Worker.objects.filter(id__in=ids).update(lease_until=ago(1))


def test_a_worker_registers_with_what_it_is(own: OwnConnection) -> None:
    before = timezone.now()
    id = register(
        own,
        "web-7:4711",
        queues=["a", "b"],
        job_types=[ADD],
        versions={"python": "3.13"},
        lease=LEASE,
    )

    row = Worker.objects.get(id=id)
    assert (row.name, row.host, row.pid) == ("web-7:4711", "host", 1)
    assert (row.identity, row.supervisor, row.release) == ("boot:1:1", "host:0", "r1")
    assert (row.queues, row.job_types) == (["a", "b"], [ADD])
    assert (row.threads, row.async_slots) == (4, 0)
    assert row.versions == {"python": "3.13"}
    assert (row.state, row.end, row.running, row.listening) == ("running", "", 0, False)
    lease = timedelta(seconds=LEASE)
    assert before + lease <= row.lease_until <= timezone.now() + lease
    assert (row.desired, row.stopped_at) == ("", None)


def test_one_statement_renews_the_leases_of_all_workers_of_a_host(
    own: OwnConnection,
) -> None:
    ids = [register(own, f"host:{n}", host="here") for n in range(2)]
    there, done = register(own, host="there"), register(own, host="here")
    worker_rows.stopped(own, [done], end="")
    here = [one.id for one, _ in worker_rows.predecessors(own, "here")]
    assert sorted(here) == ids
    expected = [((there, "host:1", False), "boot:1:1")]
    assert worker_rows.predecessors(own, "there") == expected
    lapse(*ids)
    for draining, state in ((True, "draining"), (False, "running")):
        before = timezone.now()
        beats = [beat(id, running=id, rss=2**40, draining=draining) for id in ids]
        assert worker_rows.renew(own, beats, LEASE) == dict.fromkeys(ids, ("", 0))
        for row in Worker.objects.filter(id__in=ids):
            lease = timedelta(seconds=LEASE)
            assert before + lease <= row.lease_until <= timezone.now() + lease
            assert before <= row.renewed_at
            assert (row.running, row.rss, row.state) == (row.id, 2**40, state)
    assert worker_rows.renew(own, [], LEASE) == {}


def test_a_worker_that_is_no_more_is_not_renewed(own: OwnConnection) -> None:
    for lost in (True, False):
        worker = register(own)
        worker_rows.set_listening(own, worker, True)
        worker_rows.stopped(own, [worker], end="exit code 1", lost=lost)
        worker_rows.stopped(own, [worker], end="second", lost=not lost)
        assert worker_rows.renew(own, [beat(worker)], LEASE) == {}
        row = Worker.objects.get(id=worker)
        assert (row.state, row.end) == ("lost" if lost else "stopped", "exit code 1")
        assert row.stopped_at is not None
        assert (row.listening, row.running) == (False, 0)
    Worker.objects.all().delete()
    assert register(own, queues=[]) > worker  # an id is never given again
    assert Worker.objects.get().queues == []
    register(own, queues=None)
    assert Worker.objects.filter(queues__isnull=True).exists()


def test_only_a_worker_whose_lease_lapsed_is_given_up(own: OwnConnection) -> None:
    late, draining, alive, done = (register(own, f"host:{n}") for n in range(4))
    worker_rows.stopped(own, [done], end="")
    worker_rows.renew(own, [beat(draining, draining=True)], LEASE)
    worker_rows.set_listening(own, late, True)
    assert Worker.objects.get(listening=True).id == late
    lapse(late, draining, done)
    given_up = [(late, "host:0", False), (draining, "host:1", True)]
    assert sorted(worker_rows.give_up(own)) == given_up
    assert worker_rows.give_up(own) == []
    states = Worker.objects.order_by("id").values_list("state", flat=True)
    assert list(states) == ["lost", "lost", "running", "stopped"]
    row = Worker.objects.get(id=late)
    assert (row.end, row.listening) == ("its lease lapsed", False)
    assert worker_rows.renew(own, [beat(late), beat(alive)], LEASE) == {alive: ("", 0)}


def renewal(worker: int) -> dict[str, object]:
    """The parameters of a renewal."""
    return {
        "ids": [worker],
        "running": [0],
        "rss": [0],
        "draining": [False],
        "lease": LEASE,
    }


def test_a_renewal_that_comes_first_wins_over_a_giving_up(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    lapse(holder)
    with open_transaction(other) as transaction:
        transaction.run(worker_rows.RENEW_FREE, renewal(holder))
        assert worker_rows.give_up(own) == []
    assert worker_rows.give_up(own) == []
    assert Worker.objects.get().state == "running"


def test_a_giving_up_that_comes_first_wins_over_a_renewal_or_another_one(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    lapse(holder)
    with open_transaction(other) as transaction:
        assert [one.id for one in worker_rows.give_up(transaction)] == [holder]
        assert worker_rows.give_up(own) == []
        assert worker_rows.renew(own, [beat(holder)], LEASE) == {holder: None}
    assert worker_rows.renew(own, [beat(holder)], LEASE) == {}
    assert Worker.objects.get().state == "lost"


def test_a_locked_worker_keeps_no_other_from_being_renewed_or_given_up(
    own: OwnConnection, other: OwnConnection, holder: int
) -> None:
    second = register(own, "host:2")
    for lock in ("SHARE", "NO KEY UPDATE", "UPDATE"):
        lapse(holder, second)
        row = f"SELECT FROM jobqueue_worker WHERE id = {holder} FOR {lock}"
        with open_transaction(other) as transaction:
            transaction.fetch(row)
            renewed = worker_rows.renew(own, [beat(holder), beat(second)], LEASE)
            assert renewed == {holder: None, second: ("", 0)}
            lapse(second)
            assert [one.id for one in worker_rows.give_up(own)] == [second]
        assert worker_rows.renew(own, [beat(holder)], LEASE) == {holder: ("", 0)}
        second = register(own, "host:2")


def test_a_worker_that_writes_to_its_own_row_is_renewed_all_the_same(
    own: OwnConnection,
    other: OwnConnection,
    holder: int,
    background: Background,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_rows, "MOMENT", 30.0)
    with open_transaction(other) as transaction:
        worker_rows.set_listening(transaction, holder, True)
        future = background(partial(worker_rows.renew, own, [beat(holder)], LEASE))
        until_waiting()
    assert future.result(30) == {holder: ("", 0)}


def test_running_jobs_of_dead_workers_are_strays(own: OwnConnection) -> None:
    alive, draining, lost, gone = (register(own, f"host:{n}") for n in range(4))
    make_many(6)
    for worker in (alive, draining, lost, gone, gone):
        claimed(own, worker)
    worker_rows.renew(own, [beat(draining, draining=True)], LEASE)
    lapse(alive, lost)
    worker_rows.stopped(own, [lost], end="", lost=True)
    Worker.objects.filter(id=gone).delete()
    assert sorted(worker_rows.strays(own)) == [lost, gone]
    QueuedJob.objects.filter(worker_id__in=[lost, gone]).delete()
    assert worker_rows.strays(own) == []


def test_only_living_workers_are_asked(own: OwnConnection, ear: Hearing) -> None:
    first, second, done, lost = ids = [register(own, f"host:{n}") for n in range(4)]
    worker_rows.stopped(own, [done], end="")
    worker_rows.stopped(own, [lost], end="", lost=True)
    worker_rows.renew(own, [beat(second, draining=True)], LEASE)
    alive = [first, second]
    assert sorted(worker_rows.ask(own, ids, "drain")) == alive
    assert sorted(ear.heard()) == sorted([f"w:{first}", f"w:{second}"])
    renewed = worker_rows.renew(own, [beat(first), beat(second)], LEASE)
    assert renewed == {first: ("drain", 0), second: ("drain", 0)}
    assert sorted(worker_rows.ask(own, ids, "resume")) == alive
    assert sorted(worker_rows.request_stack_dumps(own, ids)) == alive


def test_workers_that_ended_a_day_ago_are_forgotten(own: OwnConnection) -> None:
    names = ["alive", "stopped", "lost", "just stopped"]
    ids = {name: register(own, name) for name in names}
    worker_rows.stopped(own, [ids["stopped"], ids["just stopped"]], end="")
    worker_rows.stopped(own, [ids["lost"]], end="", lost=True)
    Worker.objects.exclude(name="just stopped").update(
        started_at=ago(200_000), lease_until=ago(100_000)
    )
    for name in ("stopped", "lost"):
        Worker.objects.filter(name=name).update(stopped_at=ago(86_400 + 60))
    worker_rows.forget(own)
    left = set(Worker.objects.values_list("name", flat=True))
    assert left == {"alive", "just stopped"}


def test_the_next_lapse_is_that_of_a_living_worker(own: OwnConnection) -> None:
    assert worker_rows.next_lapse(own).due_in is None
    register(own, lease=600)
    register(own, lease=100)
    worker_rows.stopped(own, [register(own, lease=1)], end="")
    lapses = worker_rows.next_lapse(own).due_in
    assert lapses is not None
    assert 70 < lapses <= 100
