"""The page of memory that processes share."""

from __future__ import annotations

import os
import signal
from uuid import UUID

from django_jobqueue.processes.attempt_table import AttemptTable, Row
from django_jobqueue.processes.process_table import ProcessEntry, ProcessTable
from django_jobqueue.processes.wakeups import WakeupPipes
from tests.execution.test_attempt import attempt_of

LEASE = 15.0  # seconds
READS = 20_000  # beside a writer; before its words were whole, most found a zero
HEAD = [
    name for name, value in vars(ProcessTable).items() if isinstance(value, property)
]


def test_a_seat_holds_what_is_written() -> None:
    process_table = ProcessTable(3)
    assert list(process_table) == []
    process_table.write(1, pid=7, renewable=1)
    process_table.write(1, worker=9, running=2)
    (entry,) = process_table
    assert (entry.number, entry.pid, entry.worker, entry.running) == (1, 7, 9, 2)
    assert process_table.free() == 0
    process_table.clear(1)
    assert list(process_table) == []


def test_the_head_is_apart_from_the_entries() -> None:
    process_table = ProcessTable(1)
    process_table.write(0, pid=7, desired=3)
    assert process_table.free() is None
    head = {
        "renewed_at": 12.5,
        "recovered": 5,
        "quarantine_seen_at": 7.5,
        "last_activity_at": 3.5,
        "maintenance_is_ready": True,
        "can_listen": True,
    }
    for name, value in head.items():
        setattr(process_table, name, value)
    assert {name: getattr(process_table, name) for name in head} == head
    assert process_table.entry(0).desired == 3


def write_without_rest(table: ProcessTable, row: Row) -> None:
    """Write each field again and again, and never a zero."""
    attempt, fields = attempt_of(lambda: None), ProcessEntry._fields[1:]
    while True:
        for value in (1, 2):
            table.write(0, **dict.fromkeys(fields, value))
            for name in HEAD:
                setattr(table, name, value)
            row.enter(attempt)


def test_a_reader_never_sees_a_zero_that_nobody_wrote() -> None:
    table, attempts = ProcessTable(1), AttemptTable(1)
    row = attempts.row(7)
    fields = ProcessEntry._fields[1:]
    table.write(0, **dict.fromkeys(fields, 1))
    for name in HEAD:
        setattr(table, name, 1)
    if (pid := os.fork()) == 0:
        write_without_rest(table, row)
    try:
        zeros = {
            name
            for _ in range(READS)
            for name, value in [
                *zip(fields, table.entry(0)[1:], strict=True),
                *((name, getattr(table, name)) for name in HEAD),
                *(("job", one.job != UUID(int=0)) for one in attempts.running()),
            ]
            if not value
        }
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert zeros == set()


def test_a_lease_counts_from_its_renewal_or_registration_or_from_later() -> None:
    process_table = ProcessTable(3)
    process_table.write(0, pid=7, registered=5_000)
    # After an outage, before a renewal.
    process_table.write(1, pid=8, registered=30_500)
    process_table.write(2, pid=7, registered=5_000, extended=1, held=1)
    old, new, extended = process_table
    assert old.leased_at(20.0, 15.0) == 20.0
    assert new.leased_at(20.0, 15.0) == 30.5
    assert extended.leased_at(20.0, 15.0) == 50.0
    assert not extended.is_cut_off(20.0, 62.0, 15.0)
    assert extended.is_cut_off(20.0, 63.0, 15.0)


def idle_table(wakeups: WakeupPipes | None = None) -> ProcessTable:
    """Nobody has had anything to do for long."""
    process_table = ProcessTable(1, wakeups)
    process_table.can_listen = True
    process_table.last_activity_at = 100.0
    return process_table


def test_a_host_is_idle_when_nobody_had_anything_to_do_for_a_lease() -> None:
    process_table = idle_table(WakeupPipes())
    assert not process_table.is_idle(115.0, LEASE)
    assert process_table.is_idle(116.0, LEASE)
    assert process_table.may_idle(116.0, LEASE)
    process_table.can_listen = False  # nobody is notified
    assert not process_table.is_idle(1_000.0, LEASE)

    process_table = idle_table()  # nobody can be woken
    assert process_table.is_idle(116.0, LEASE)
    assert not process_table.may_idle(116.0, LEASE)
    process_table.activity(117.0, LEASE)
    assert not process_table.is_idle(118.0, LEASE)


def test_whoever_may_rest_is_woken_when_somebody_has_something_to_do() -> None:
    wakeups = WakeupPipes()
    process_table = idle_table(wakeups)
    process_table.activity(105.0, LEASE)  # all look often anyway
    assert process_table.last_activity_at == 105.0
    for wakeup in (wakeups.supervisor, wakeups.maintenance):
        assert not wakeup.wait(0)[0]
    process_table.activity(121.0, LEASE)
    assert not process_table.is_idle(121.0, LEASE)
    for wakeup in (wakeups.supervisor, wakeups.maintenance):
        assert wakeup.wait(0)[0]
