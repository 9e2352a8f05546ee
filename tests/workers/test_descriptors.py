"""A process may have more than a thousand files and sockets open."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator

import pytest
from django.db import connections

from django_jobqueue.execution import connection_reset
from django_jobqueue.processes.wait_readable import wait_readable
from django_jobqueue.store.connection import OwnConnection
from tests.sample import jobs
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

MANY = 1_100
PATIENCE = 20.0  # seconds


@pytest.fixture
def _many_open() -> Iterator[None]:
    """Whatever is opened next has a number above that of ``select.select()``."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * MANY), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(MANY)]
    yield
    for descriptor in opened:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_open")
def test_a_connection_is_kept_until_the_server_closes_it(own: OwnConnection) -> None:
    wrapper = connections["default"]
    wrapper.close()
    filler = [os.open(os.devnull, os.O_RDONLY)]
    while filler[-1] < 1_024:  # the number that was just closed, say
        filler.append(os.open(os.devnull, os.O_RDONLY))
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (backend,) = cursor.fetchone()
    assert wrapper.connection.fileno() > 1_023
    is_cut = connection_reset._is_cut  # private: what looks at the descriptor
    assert not is_cut(wrapper)
    own.run("SELECT pg_terminate_backend(%(pid)s)", {"pid": backend})
    eventually(lambda: is_cut(wrapper))
    wrapper.close()
    for descriptor in filler:
        os.close(descriptor)


def test_a_pipe_whose_other_end_is_closed_can_be_read() -> None:
    reader, writer = os.pipe()
    assert wait_readable(reader, within=0) == []
    os.close(writer)
    assert wait_readable(reader, within=PATIENCE) == [reader]
    os.close(reader)


@pytest.mark.processes
def test_workers_run_jobs_with_many_files_open(
    runworkers: Callable[..., RunWorkers],
) -> None:
    run = runworkers(SAMPLE_OPEN_FILES=str(MANY))
    run.started()
    jobs.add.enqueue(1, b=2)
    jobs.aadd.enqueue(1, b=2)
    eventually(lambda: len(archived(status="succeeded")) == 2, what=run.output)
    assert run.stop() == 0
    assert "ERROR" not in run.output
