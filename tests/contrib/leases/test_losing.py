"""A lease is renewed while its process lives, and known to be lost soon after it is."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from django_jobqueue import LeaseLost
from django_jobqueue.contrib.leases import (
    lease,
    lease_rows,
    process_leases,
    take_away_leases,
    try_lease,
)
from django_jobqueue.contrib.leases.models import Lease
from django_jobqueue.store.connection import OwnConnection
from tests.contrib.leases.conftest import Stranger, claimant
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """The clock of this machine, as leases see it."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.real = process_leases.lease_time

    def __call__(self) -> float:
        return self.real() + self.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that goes on when it is told to, as after a pause of the process."""
    made = Clock()
    monkeypatch.setattr(process_leases, "lease_time", made)
    return made


def lapse(name: str = "import") -> None:
    """Let the database take the lease for one that was not renewed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobqueue_leases_lease SET lease_until = clock_timestamp()"
            " - interval '1 second' WHERE name = %s",
            [name],
        )


def renewed(name: str = "import") -> None:
    """Wait for the next renewal."""
    before = Lease.objects.get(name=name).renewed_at
    eventually(lambda: Lease.objects.get(name=name).renewed_at > before)


def test_leases_are_renewed_by_the_shortest_of_them_also_in_a_transaction_that_needs_it(
    stranger: Stranger,
) -> None:
    with lease("import", ttl=2) as held, lease("export", ttl=3600):
        first = Lease.objects.get(name="import").lease_until
        before = Lease.objects.get(name="export").renewed_at
        with held.atomic():
            renewed("import")
        assert Lease.objects.get(name="export").renewed_at > before
        eventually(lambda: Lease.objects.filter(renewed_at__gt=first).exists())
        assert not stranger.take().fence
        held.check()


def test_a_lease_that_somebody_took_over_is_lost(
    stranger: Stranger, caplog: pytest.LogCaptureFixture
) -> None:
    with lease("import", ttl=2) as held:
        lapse()
        assert stranger.take().fence == held.fence + 1
        eventually(lambda: held.is_lost)
        with pytest.raises(LeaseLost, match="taken away, or taken over") as caught:
            held.check()
    assert caught.value.name == "import"
    assert not Lease.objects.filter(token=None).exists()  # nor is the other's released
    (record,) = [r for r in caplog.records if r.name == "django_jobqueue.leases"]
    assert record.levelno == logging.WARNING


def test_a_lease_that_lapsed_and_nobody_wanted_is_renewed(stranger: Stranger) -> None:
    """As after a leap of the database's clock."""
    with lease("import", ttl=2) as held:
        lapse()
        renewed()
        held.check()
        assert not stranger.take().fence


def test_after_a_pause_a_lease_is_lost_at_once_and_for_good(
    clock: Clock, stranger: Stranger
) -> None:
    with lease("import", ttl=15) as held:
        clock.ahead = 14
        held.check()
        clock.ahead = 15
        with pytest.raises(LeaseLost, match="could not be renewed for 15 s"):
            held.check()
        clock.ahead = 0
        assert held.is_lost
        with pytest.raises(LeaseLost), held.atomic():
            pytest.fail("it is lost")
    assert stranger.take().fence  # it was released all the same


def test_a_row_that_is_locked_costs_the_lease_only_if_it_is_locked_for_long(
    own: OwnConnection,
) -> None:
    with lease("import", ttl=2) as held:
        with own.transaction() as db:
            db.fetch(
                "SELECT FROM jobqueue_leases_lease WHERE name = 'import' FOR UPDATE"
            )
            renewer = process_leases._renewer  # private: nothing shows that it waits
            assert renewer is not None
            again_at = lambda: renewer._again_at  # noqa: E731 # private: as above
            eventually(again_at, what="a renewal that found it locked")
        renewed()
        held.check()


def test_a_lost_connection_is_replaced_before_the_lease_lapses() -> None:
    with lease("import", ttl=2) as held:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'jobqueue leases'"
                "   AND datname = current_database()"
            )
        renewed()
        held.check()


# Transactions that need the lease.


def test_a_transaction_that_needs_the_lease_commits_while_it_is_held() -> None:
    with lease("import") as held:
        with suppress(ZeroDivisionError), held.atomic():
            Group.objects.create(name="gone")
            raise ZeroDivisionError
        with held.atomic():
            Group.objects.create(name=f"by {held.fence}")
    assert [group.name for group in Group.objects.all()] == ["by 1"]


def test_a_transaction_that_needs_a_lost_lease_does_not_begin(
    stranger: Stranger,
) -> None:
    with lease("import") as held:
        lapse()
        stranger.take()
        with pytest.raises(LeaseLost), held.atomic():
            pytest.fail("somebody else has it")
        assert held.is_lost


def test_nobody_takes_the_lease_over_while_a_transaction_needs_it(
    stranger: Stranger,
) -> None:
    """This is what the lock on its row is for: without it, the other one would write
    first, and the transaction commit after it with a smaller fence."""
    with lease("import", ttl=3600) as held:
        with transaction.atomic():  # an outer one keeps it until its own end
            with held.atomic():
                Group.objects.create(name=f"by {held.fence}")
                lapse_elsewhere(stranger.db)
                assert not stranger.take().fence
            assert not stranger.take().fence
        lapse()
        assert stranger.take().fence == held.fence + 1


def lapse_elsewhere(db: OwnConnection) -> None:
    db.run(
        "UPDATE jobqueue_leases_lease SET lease_until = clock_timestamp()"
        " - interval '1 second'"
    )


def test_a_lease_is_taken_away_when_the_transaction_that_needs_it_has_ended(
    own: OwnConnection,
) -> None:
    done: list[list[str]] = []

    def take_away() -> None:
        done.append(take_away_leases("import"))
        connection.close()

    with lease("import") as held:
        with held.atomic():
            thread = threading.Thread(target=take_away)
            thread.start()
            eventually(lambda: is_locked_out(own), what="it to wait")
            assert done == []
        thread.join(20)
        assert done == [["import"]]
        with pytest.raises(LeaseLost), held.atomic():
            pytest.fail("it was taken away")


def is_locked_out(db: OwnConnection) -> bool:
    return bool(
        db.fetch(
            "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND query LIKE '%%leases_lease%%' AND datname = current_database()"
        )
    )


# Forks, and the clock of the database.


def test_a_fork_does_not_have_the_leases_of_its_parent(
    stranger: Stranger, in_a_fork: Callable[[Callable[[], str]], str]
) -> None:
    with lease("import", ttl=2) as held:

        def child() -> str:
            try:
                held.check()
            except LeaseLost as error:
                reason = error.reason
            held.release()
            connection.connection = None  # the parent's
            mine = try_lease("import")
            other = try_lease("export")
            assert other is not None
            other.check()
            other.release()
            return f"{reason}; {mine}"

        assert in_a_fork(child) == (
            "it belongs to the process that this one was forked from; None"
        )
        renewed()
        held.check()


@pytest.fixture
def in_a_fork() -> Callable[[Callable[[], str]], str]:
    """Call a function in a child of this process, and return what it returned."""

    def call(function: Callable[[], str]) -> str:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            try:
                text = function()
            except BaseException as error:
                text = repr(error)
            os.write(writer, text.encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            text = answer.read()
        os.waitpid(pid, 0)
        return text

    return call


def test_a_dead_holders_lease_lapses_in_time_although_the_clock_was_set_back(
    own: OwnConnection, stranger: Stranger
) -> None:
    lease_rows.take(own, claimant(ttl=0.3))
    own.run(
        "UPDATE jobqueue_leases_lease SET renewed_at = renewed_at + interval '1 hour',"
        " lease_until = lease_until + interval '1 hour'"
    )
    with lease("import", wait=20) as held:
        assert held.fence == 2
