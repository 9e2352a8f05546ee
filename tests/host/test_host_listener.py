"""The listener of a host, which hears for all of its workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from django_jobqueue.host.maintenance.host_listener import HostListener
from django_jobqueue.processes.idle import WakeupPipes
from django_jobqueue.processes.process_table import ProcessTable
from django_jobqueue.processes.worker_relay import ROOM, WAKE
from django_jobqueue.store.connection import OwnConnection
from django_jobqueue.store.notify import News, notify
from tests.conftest import eventually

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
    assert relay is not None
    listener = HostListener(table, relay, OwnConnection("listener"), ["mail"])
    listener.start()
    eventually(lambda: table.listener_hears)
    yield listener
    listener.stop(20)


def texts(table: ProcessTable, count: int) -> list[str]:
    """So many, as the worker gets them."""
    news, read = table.news_of(0), []
    assert news is not None
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
