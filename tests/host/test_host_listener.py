"""The listener of a host, which hears for all of its workers."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from django_jobqueue.host.maintenance.host_listener import HostListener
from django_jobqueue.models import QueuedJob
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.processes.worker_relay import ROOM, WAKE
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import CHANNEL, NOTIFY, News, notify
from django_jobqueue.store.worker_rows import set_listening
from tests.store.meanwhile import channel_of
from tests.store.rows import ADD, register
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def table() -> Iterator[ProcessTable]:
    """With one worker, which is idle, and whose id is 7."""
    pipes = WakeupPipes.with_workers(1)
    table = ProcessTable(1, pipes)
    table.write(0, pid=1, worker=7, readiness=ROOM)
    yield table
    pipes.close()


@pytest.fixture
def listener(own: OwnConnection, table: ProcessTable) -> Iterator[HostListener]:
    relay = table.relay()
    config = WorkerConfig(queues=("mail",), supervisor="here:1")
    listener = HostListener(table, relay, OwnConnection("listener"), config)
    listener.start()
    eventually(lambda: table.listener_hears)
    yield listener
    listener.stop(20)


def texts(table: ProcessTable, count: int) -> list[str]:
    """So many, as the worker gets them."""
    news, read = table.news_of(0), []
    while len(read) < count:
        read += news.wait(20)
    return read


def test_it_passes_on_what_concerns_the_worker(
    table: ProcessTable, listener: HostListener, own: OwnConnection
) -> None:
    assert texts(table, 1) == ["t:"]  # whatever was missed
    for news, about in (
        (News.JOBS, "other"),
        (News.OVER, "1"),
        (News.CONTROL, "8"),
        (News.JOBS, "mail"),
        (News.CANCEL, "1"),
        (News.CONTROL, "7"),
    ):
        notify(own, news, about)
    assert texts(table, 3) == [WAKE, "c:1", "w:7"]
    assert table.behind_heard == 0
    notify(own, News.BEHIND, "mail")
    eventually(lambda: table.behind_heard)


def test_workers_are_woken_when_it_is_cut_off_and_when_it_ends(
    table: ProcessTable, listener: HostListener, own: OwnConnection
) -> None:
    texts(table, 1)
    own.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'jobqueue listener' AND datname = current_database()"
    )
    assert texts(table, 2) == [WAKE, "t:"]
    eventually(lambda: table.listener_hears)
    listener.stop(20)
    assert not table.listener_hears
    assert texts(table, 1) == [WAKE]


def test_jobs_of_which_another_host_was_told_are_left_to_it_at_first(
    table: ProcessTable, listener: HostListener, own: OwnConnection
) -> None:
    """A job that still waits then is another matter, and one that is not there none."""
    texts(table, 1)
    waiting, gone = UUID(int=1), UUID(int=2)
    QueuedJob.objects.create(id=waiting, job_type_id=ADD, queue="mail")
    heard = table.jobs_heard
    notify(own, News.NEIGHBOUR, f"{gone} there mail")
    notify(own, News.NEIGHBOUR, f"{waiting} there other")
    notify(own, News.CONTROL, "7")
    assert texts(table, 1) == ["w:7"]
    assert table.jobs_heard == heard
    notify(own, News.NEIGHBOUR, f"{waiting} there mail")
    assert texts(table, 1) == [WAKE]
    assert table.jobs_heard == heard + 1


def test_jobs_of_which_only_this_host_was_told_are_passed_on_if_it_has_no_room(
    table: ProcessTable,
    listener: HostListener,
    own: OwnConnection,
    other: OwnConnection,
) -> None:
    texts(table, 1)
    set_listening(own, register(own, supervisor="there:1"), True)
    own.run(NOTIFY, {"payload": "w:7"})
    told = f"SELECT pg_notify('{channel_of(own, 'here:1')}', 'j:mail')"
    with other.raw() as raw:
        raw.execute(f"LISTEN {CHANNEL}")
        own.run(told)
        assert texts(table, 2) == ["w:7", WAKE]
        table.write(0, readiness=0)
        own.run(told)
        passed_on = [each.payload for each in raw.notifies(timeout=20, stop_after=1)]
    assert passed_on == ["q:mail"]
