"""The page of memory that processes share."""

from __future__ import annotations

import os

from django_jobqueue.processes.process_table import Roster
from django_jobqueue.processes.wakeup_pipe import Bells

LEASE = 15.0  # seconds


def test_a_seat_holds_what_is_written() -> None:
    roster = Roster(3)
    assert list(roster) == []
    roster.write(1, pid=7, renewable=1)
    roster.write(1, worker=9, running=2)
    (seat,) = roster
    assert (seat.number, seat.pid, seat.worker, seat.running) == (1, 7, 9, 2)
    assert roster.free() == 0
    roster.clear(1)
    assert list(roster) == []


def test_a_full_roster_has_no_free_seat() -> None:
    roster = Roster(1)
    roster.write(0, pid=7)
    assert roster.free() is None


def test_the_head_is_apart_from_the_seats() -> None:
    roster = Roster(1)
    roster.write(0, pid=7, desired=3)
    roster.renewed_at = 12.5
    roster.keeper_is_ready = roster.can_listen = True
    roster.alone_seen_at, roster.buried, roster.stirred_at = 7.5, 5, 3.5
    assert (roster.renewed_at, roster.buried) == (12.5, 5)
    assert (roster.alone_seen_at, roster.stirred_at) == (7.5, 3.5)
    assert roster.keeper_is_ready
    assert roster.can_listen
    assert roster.seat(0).desired == 3


def test_a_forked_process_writes_to_the_same_page() -> None:
    roster = Roster(1)
    pid = os.fork()
    if pid == 0:
        roster.write(0, pid=42)
        os._exit(0)
    os.waitpid(pid, 0)
    assert roster.seat(0).pid == 42


def test_a_lease_counts_from_its_renewal_or_its_registration() -> None:
    roster = Roster(2)
    roster.write(0, pid=7, registered=5_000)
    roster.write(1, pid=8, registered=30_500)  # after an outage, before a renewal
    old, new = roster
    assert old.leased_at(20.0, 15.0) == 20.0
    assert new.leased_at(20.0, 15.0) == 30.5


def test_a_lease_that_was_renewed_for_longer_counts_from_later() -> None:
    roster = Roster(1)
    roster.write(0, pid=7, registered=5_000, eased=1, held=1)
    (seat,) = roster
    assert seat.leased_at(20.0, 15.0) == 50.0
    assert not seat.is_cut_off(20.0, 62.0, 15.0)
    assert seat.is_cut_off(20.0, 63.0, 15.0)


def calm_roster(bells: Bells | None = None) -> Roster:
    """Nobody has had anything to do for long."""
    roster = Roster(1, bells)
    roster.can_listen = True
    roster.stirred_at = 100.0
    return roster


def test_a_host_is_calm_when_nobody_had_anything_to_do_for_a_lease() -> None:
    roster = calm_roster(Bells())
    assert not roster.is_calm(115.0, LEASE)
    assert roster.is_calm(116.0, LEASE)
    assert roster.may_rest(116.0, LEASE)


def test_a_host_that_hears_no_notifications_is_never_calm() -> None:
    roster = calm_roster(Bells())
    roster.can_listen = False
    assert not roster.is_calm(1_000.0, LEASE)


def test_nobody_rests_for_long_who_cannot_be_woken() -> None:
    roster = calm_roster()
    assert roster.is_calm(116.0, LEASE)
    assert not roster.may_rest(116.0, LEASE)
    roster.stir(117.0, LEASE)
    assert not roster.is_calm(118.0, LEASE)


def test_whoever_may_rest_is_woken_when_somebody_has_something_to_do() -> None:
    bells = Bells()
    roster = calm_roster(bells)
    roster.stir(116.0, LEASE)
    assert not roster.is_calm(116.0, LEASE)
    assert bells.supervisor.wait(0)[0]
    assert bells.keeper.wait(0)[0]


def test_nobody_is_woken_while_all_look_often_anyway() -> None:
    bells = Bells()
    roster = calm_roster(bells)
    roster.stir(105.0, LEASE)
    assert roster.stirred_at == 105.0
    assert not bells.supervisor.wait(0)[0]
    assert not bells.keeper.wait(0)[0]
