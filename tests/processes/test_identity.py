"""Which process of which machine this is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from django_jobqueue.processes import identity


def test_a_process_that_has_ended_is_dead_also_before_it_is_reaped() -> None:
    assert not identity.is_dead(identity.identity(os.getpid()))
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    known = identity.identity(child)
    assert not identity.is_dead(known)
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # a zombie now
    assert identity.is_dead(known)
    os.waitpid(child, 0)
    assert identity.is_dead(known)


def test_another_process_with_the_same_number_is_told_apart() -> None:
    boot, namespace, pid, started = identity.identity(os.getpid()).split("/")
    assert identity.is_dead(f"{boot}/{namespace}/{pid}/{int(started) - 1}")


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "a/b", "{0}/{1}/x/1", "{0}/{1}/1/1/new"),  # none of ours
        *("other/{1}/1/1", "{0}/0/999999/1"),  # of another start or namespace
    ],
)
def test_what_is_of_another_machine_cannot_be_judged(text: str) -> None:
    boot, namespace, *_ = identity.identity(os.getpid()).split("/")
    assert not identity.is_dead(text.format(boot, namespace))


def test_without_proc_nobody_can_be_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    known = identity.identity(os.getpid())
    monkeypatch.setattr(identity, "identity", lambda pid: "")
    for other in ("", known):
        assert not identity.is_dead(other)


def test_memory_is_read_in_bytes() -> None:
    assert identity.rss(os.getpid()) > 1_000_000
    assert identity.rss(2**22 + 1) == 0


SHOWN = "1 (name with ) in it) {state}" + " 0" * 18 + " {started}"
READABLE = {
    "as it was": SHOWN.format(state="S", started=7),
    "a later process": SHOWN.format(state="S", started=8),
    "a zombie": SHOWN.format(state="Z", started=7),
    "cut off": "1 (name",
    "hidden": None,
}
SIGNALS = {"ours": None, "of another user": PermissionError, "none": ProcessLookupError}
SURELY_DEAD = {  # by what /proc says, and by what a signal finds
    **{("a later process", who): True for who in SIGNALS},
    **{("a zombie", who): True for who in SIGNALS},
    ("cut off", "none"): True,
    ("hidden", "none"): True,
}


def test_it_is_dead_only_if_that_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = identity.identity(os.getpid())
    boot, namespace, *_ = mine.split("/")
    for shown, found in product(READABLE, SIGNALS):

        def read(path: Path, text: str | None = READABLE[shown]) -> str:
            if text is None:
                raise FileNotFoundError(path)
            return text

        def kill(pid: int, number: int, error: Any = SIGNALS[found]) -> None:
            assert (pid, number) == (1, 0)
            if error is not None:
                raise error

        with monkeypatch.context() as patch:
            patch.setattr(identity, "identity", lambda pid: mine)
            patch.setattr(Path, "read_text", read)
            patch.setattr(os, "kill", kill)
            is_dead = identity.is_dead(f"{boot}/{namespace}/1/7")
        assert is_dead is SURELY_DEAD.get((shown, found), False), (shown, found)


HIDDEN = """
import os, signal
from django_jobqueue.processes import identity

reader, writer = os.pipe()
pid = os.fork()
if pid == 0:  # of root, and hidden from others
    os.close(writer)
    os.read(reader, 1)
    os._exit(0)
known = identity.identity(pid)
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
assert not os.path.exists(f"/proc/{pid}")
print(known != "", identity.is_dead(known))
os.close(writer)
os.waitpid(pid, 0)
print(identity.is_dead(known))
"""
IN_A_NAMESPACE = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c")


@pytest.mark.dear
def test_a_living_process_that_proc_hides_is_not_dead() -> None:
    """As between two units of systemd with ProtectProc=invisible, and two users."""
    script = 'mount -o remount,hidepid=2 /proc && exec "$0" -c "$1"'
    done = subprocess.run(
        [*IN_A_NAMESPACE, script, sys.executable, HIDDEN],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    if done.returncode and "not permitted" in done.stderr:
        pytest.skip("needs root: only it may mount a /proc of its own")
    assert (done.stdout, done.stderr) == ("True False\nTrue\n", "")
