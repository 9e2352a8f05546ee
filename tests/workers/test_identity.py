"""Which process of which machine this is."""

from __future__ import annotations

import os
import subprocess
import sys

from django_jobqueue.workers import identity


def test_a_living_process_is_not_dead() -> None:
    assert not identity.is_dead(identity.identity(os.getpid()))


def test_a_process_that_has_ended_is_dead_also_before_it_is_reaped() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    known = identity.identity(process.pid)
    assert not identity.is_dead(known)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert identity.is_dead(known)
    process.communicate()
    assert identity.is_dead(known)


def test_another_process_with_the_same_number_is_told_apart() -> None:
    boot, namespace, pid, started = identity.identity(os.getpid()).split("/")
    earlier = "/".join([boot, namespace, pid, str(int(started) - 1)])
    assert identity.is_dead(earlier)


def test_processes_of_another_start_or_namespace_cannot_be_judged() -> None:
    _boot, namespace, _pid, _started = identity.identity(os.getpid()).split("/")
    assert not identity.is_dead(f"other/{namespace}/1/1")
    boot = identity.identity(os.getpid()).split("/")[0]
    assert not identity.is_dead(f"{boot}/0/999999/1")
    assert not identity.is_dead("")


def test_memory_is_read_in_bytes() -> None:
    assert identity.rss(os.getpid()) > 1_000_000
    assert identity.rss(2**22 + 1) == 0
