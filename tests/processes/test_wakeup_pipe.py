"""What wakes a process that rests."""

from __future__ import annotations

import os

from django_jobqueue.processes.wakeups import WakeupPipe

PATIENCE = 20.0  # seconds


def test_a_bell_wakes_who_waits_for_it_once_also_from_a_forked_process() -> None:
    wakeup = WakeupPipe()
    pid = os.fork()
    if pid == 0:
        wakeup.ring()
        wakeup.ring()
        os._exit(0)
    os.waitpid(pid, 0)
    assert wakeup.wait(PATIENCE) == (True, [])
    assert wakeup.wait(0) == (False, [])
    assert not os.get_inheritable(wakeup.writer)  # programs of handlers do not


def test_who_waits_for_a_bell_hears_of_pipes_as_well() -> None:
    wakeup = WakeupPipe()
    reader, writer = os.pipe()
    os.write(writer, b"!")
    assert wakeup.wait(PATIENCE, reader) == (False, [reader])
    wakeup.ring()
    assert wakeup.wait(PATIENCE, reader) == (True, [reader])
    for end in (reader, writer):
        os.close(end)


def test_a_bell_can_be_rung_however_often_while_nobody_listens() -> None:
    wakeup = WakeupPipe()
    for _ in range(70_000):
        wakeup.ring()
    assert wakeup.wait(PATIENCE) == (True, [])
