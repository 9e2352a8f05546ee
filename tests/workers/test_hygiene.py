"""What a handler leaves in its connection does not reach the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connections
from django.db.backends.signals import connection_created

from django_jobqueue.workers import hygiene
from tests.conftest import HandDriven, archived
from tests.sample import jobs

Make = Callable[..., HandDriven]


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """As in a worker process."""
    settings = connections.settings["default"]
    age = settings["CONN_MAX_AGE"]
    hygiene.keep_connections()
    yield
    settings["CONN_MAX_AGE"] = age
    connection_created.disconnect(dispatch_uid="jobqueue.hygiene")


def session_after(make_worker: Make, handler: Callable[[], object]) -> list[str]:
    """What the second job on a thread sees of the session."""
    worker = make_worker(threads=1, async_slots=0)
    jobs.see_session.enqueue()
    worker.work()
    handler()
    worker.work()
    jobs.see_session.enqueue()
    worker.work()
    clean, *_, seen = [job.result for job in archived() if job.result is not None]
    assert seen == clean
    return list(seen)


def test_settings_locks_and_temporary_tables_are_gone(make_worker: Make) -> None:
    _path, zone, locks, table = session_after(make_worker, jobs.leave_a_mess.enqueue)
    assert (zone, locks, table) == ("UTC", "0", "None")


def test_an_open_transaction_is_closed(
    make_worker: Make, caplog: pytest.LogCaptureFixture
) -> None:
    session_after(make_worker, jobs.leave_open.enqueue)
    assert "left a transaction open" in caplog.text


def test_connections_are_kept_from_job_to_job() -> None:
    assert connections.settings["default"]["CONN_MAX_AGE"] is None


def test_a_thread_that_never_connected_has_nothing_to_clean() -> None:
    hygiene._here.__dict__.clear()
    hygiene.after_job()
    assert not hasattr(hygiene._here, "connected")
