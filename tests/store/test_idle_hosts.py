"""Of a new job one host is told that could start it, and another one that it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import NOTIFY_OTHERS
from django_jobqueue.store.worker_rows import set_listening
from tests.sample import jobs
from tests.store.meanwhile import Hearing, channel_of
from tests.store.rows import ADD, forget_job_types, register

pytestmark = pytest.mark.django_db(transaction=True)

HOSTS = [f"web-{n}:{n}" for n in range(4)]
TO_ALL = ["q:default"]


def idle(own: OwnConnection, supervisor: str, **values: Any) -> None:
    """A worker of this host that waits for jobs."""
    set_listening(own, register(own, supervisor=supervisor, **values), True)


def in_transaction() -> None:
    with transaction.atomic():
        jobs.add.enqueue(1)


WAYS: dict[str, Callable[[], Any]] = {
    "by itself": lambda: jobs.add.enqueue(1),
    "by itself, with options": lambda: jobs.add.using(priority=3).enqueue(1),
    "in a transaction": in_transaction,
}


@pytest.fixture
def ear(other: OwnConnection) -> Hearing:
    """Hears what is for all, and for these hosts."""
    return Hearing(other, *HOSTS)


@pytest.mark.parametrize("way", WAYS)
def test_two_of_the_hosts_that_could_start_it_are_told(
    way: str, own: OwnConnection, ear: Hearing
) -> None:
    for host in HOSTS:
        for _process in range(2):
            idle(own, host)
    firsts = set()
    for _ in range(40):
        WAYS[way]()
        told, neighbour = ear.heard()
        assert told == "j:default"
        job, first, queue = neighbour.removeprefix("n:").split()
        assert job == str(QueuedJob.objects.latest("id").pk)
        assert queue == "default"
        firsts.add(first)
    assert firsts == {channel_of(own, host) for host in HOSTS}


@pytest.mark.parametrize("way", WAYS)
def test_a_host_that_could_not_start_it_is_not_told(
    way: str, own: OwnConnection, ear: Hearing
) -> None:
    idle(own, HOSTS[0], queues=["mail"])
    idle(own, HOSTS[1], job_types=["tests.sample.index"])
    idle(own, HOSTS[2])
    register(own, supervisor=HOSTS[3])  # it is busy
    for _ in range(5):
        WAYS[way]()
        assert ear.heard() == ["j:default"]


def test_all_are_told_if_no_one_host_can_be(own: OwnConnection, ear: Hearing) -> None:
    """Embedded and remote workers have no listener for all of their host; a worker may
    have learnt a type that its row does not have yet."""
    register(own, supervisor=HOSTS[0])
    idle(own, HOSTS[1], queues=["mail"])
    for _ in range(2):  # while nobody is idle, nobody is told
        for enqueue in WAYS.values():
            enqueue()
            assert ear.heard() == []
    for supervisor, job_types in [("web-0:0/embedded", [ADD]), ("web-0:0", [])]:
        Worker.objects.all().delete()
        forget_job_types()
        idle(own, supervisor, job_types=job_types)
        for _ in range(2):
            for enqueue in WAYS.values():
                enqueue()
                assert ear.heard() == TO_ALL


def test_of_later_and_of_many_jobs_all_are_told(
    own: OwnConnection, ear: Hearing
) -> None:
    idle(own, HOSTS[0])
    later = jobs.add.using(run_after=timedelta(hours=1))
    later.enqueue(1)
    assert ear.heard() == TO_ALL
    with transaction.atomic():
        later.enqueue(1)
    assert ear.heard() == TO_ALL
    jobs.add.enqueue_many([{"a": n} for n in range(3)])
    assert ear.heard() == TO_ALL


def test_a_transaction_tells_one_host_of_one_type_and_all_of_others(
    own: OwnConnection, ear: Hearing
) -> None:
    """The host that is told of one may not know the others."""
    idle(own, HOSTS[0], job_types=[ADD, "tests.sample.double"])
    with transaction.atomic():
        jobs.add.enqueue(1)
        jobs.add.using(priority=3).enqueue(1)
        jobs.double.enqueue(1)
        jobs.double.using(priority=3).enqueue(1)
        jobs.add.using(queue="mail").enqueue(1)
    assert sorted(ear.heard()) == ["j:default", "q:default", "q:mail"]


def test_of_a_thousand_idle_workers_some_are_looked_at(own: OwnConnection) -> None:
    own.run(
        "INSERT INTO jobqueue_worker"
        "       (name, host, pid, supervisor, job_types, listening)"
        "SELECT 'w', 'h', 1, 'host-' || n || ':1', %(types)s::jsonb, true"
        "  FROM generate_series(1, 1000) AS n",
        {"types": f'["{ADD}"]'},
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT jobqueue_idle_hosts('default', %s)", [ADD])
        ((hosts,),) = cursor.fetchall()
    assert len(set(hosts)) == 8


def test_a_host_without_room_tells_others_unless_there_are_none(
    own: OwnConnection, ear: Hearing
) -> None:
    ours = [register(own, supervisor=HOSTS[0]) for _ in range(2)]
    set_listening(own, ours[0], True)
    queues = {"queues": ["default", "mail"], "workers": ours}
    own.run(NOTIFY_OTHERS, queues)
    assert ear.heard() == []
    idle(own, HOSTS[1], queues=["mail"])
    own.run(NOTIFY_OTHERS, queues)
    assert ear.heard() == ["q:mail"]
    idle(own, HOSTS[0])  # one that its host does not wake
    own.run(NOTIFY_OTHERS, queues)
    assert sorted(ear.heard()) == ["q:default", "q:mail"]
