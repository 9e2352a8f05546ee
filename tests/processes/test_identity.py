"""Which process of which machine this is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from django_jobqueue.processes import identity


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


@pytest.mark.parametrize("found", SIGNALS)
@pytest.mark.parametrize("shown", READABLE)
def test_a_process_is_dead_only_if_that_is_sure(
    monkeypatch: pytest.MonkeyPatch, shown: str, found: str
) -> None:
    def read(path: Path) -> str:
        text = READABLE[shown]
        if text is None:
            raise FileNotFoundError(path)
        return text

    def kill(pid: int, number: int) -> None:
        assert (pid, number) == (1, 0)
        error = SIGNALS[found]
        if error is not None:
            raise error

    boot, namespace, *_ = identity.identity(os.getpid()).split("/")
    mine = identity.identity(os.getpid())
    monkeypatch.setattr(identity, "identity", lambda pid: mine)
    monkeypatch.setattr(Path, "read_text", read)
    monkeypatch.setattr(os, "kill", kill)
    known = f"{boot}/{namespace}/1/7"
    assert identity.is_dead(known) is SURELY_DEAD.get((shown, found), False)


@pytest.mark.parametrize("text", ["", "/", "a/b", "{0}/{1}/x/1", "{0}/{1}/1/1/new"])
def test_an_identity_that_is_none_of_ours_cannot_be_judged(text: str) -> None:
    boot, namespace, *_ = identity.identity(os.getpid()).split("/")
    assert not identity.is_dead(text.format(boot, namespace))


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
        pytest.skip("only root may mount a /proc of its own")
    assert (done.stdout, done.stderr) == ("True False\nTrue\n", "")
