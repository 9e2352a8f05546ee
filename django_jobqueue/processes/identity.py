"""Identifies this process and its machine, so that a dead predecessor is recognized
with certainty."""

from __future__ import annotations

import os
import platform
import socket
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from uuid import UUID, uuid5

HOST_IDS: Final = UUID("5a3f6d0e-2c61-4f0b-9d5e-7f4b8f1f6c2a")  # their namespace
PARTS: Final = 4  # of an identity
STATE: Final = 0  # fields of /proc/…/stat after the name
USED: Final = slice(11, 13)  # in clock ticks, by itself and by the kernel for it
STARTED: Final = 19  # in clock ticks since the machine's start


@lru_cache(maxsize=1)
def host() -> str:
    """The name of this host."""
    return socket.gethostname()[:150]


def name_of(pid: int) -> str:
    """A worker's name for people: ``web-3:4112``."""
    return f"{host()}:{pid}"


def identity(pid: int) -> str:
    """The start of this machine, the process namespace, the process and its start.

    Two processes that share all four are one. Empty where /proc does not tell; then a
    dead predecessor is only known by its lease.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = os.stat("/proc/self/ns/pid").st_ino
        return f"{boot}/{namespace}/{pid}/{_stat(pid)[STARTED]}"
    except (OSError, IndexError, ValueError):
        return ""


def host_id(pid: int) -> UUID:
    """The id of the host whose supervisor this process is, also after ``exec``."""
    return uuid5(HOST_IDS, identity(pid) or name_of(pid))


def is_dead(other: str) -> bool:
    """True if the process with this identity has certainly ended.

    This is known only of processes of this machine's present start and of our process
    namespace, and not of another user's where /proc hides them (``hidepid=2``,
    systemd's ``ProtectProc=invisible``). For all others the lease decides.
    """
    mine = identity(os.getpid()).split("/")
    parts = other.split("/")
    if (
        len(parts) != PARTS
        or len(mine) != PARTS
        or mine[:2] != parts[:2]
        or not parts[2].isdecimal()
    ):
        return False
    pid, started = int(parts[2]), parts[3]
    try:
        stat = _stat(pid)
    except (OSError, IndexError):
        return not _exists(pid)
    return stat[STATE] in "ZX" or stat[STARTED] != started  # a zombie has ended


def name_process(name: str) -> str:
    """Give this process a name of at most 15 letters, which ps, top and pgrep show;
    returns the name that it had. Without /proc nothing happens."""
    path = Path("/proc/self/comm")
    try:
        before = path.read_text().rstrip("\n")
        path.write_text(name)
    except OSError:
        return name
    return before


def rss(pid: int) -> int:
    """Resident memory of a process, in bytes; 0 without /proc."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def cpu_seconds(pid: int, thread: int) -> float | None:
    """CPU seconds of a thread of a process; None without /proc."""
    try:
        used = map(int, _stat(f"{pid}/task/{thread}")[USED])
        return sum(used) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of what matters when something behaves oddly."""
    versions = {"python": platform.python_version()}
    for package in ("Django", "psycopg", "django-jobqueue"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "?"
    return versions


def _stat(pid: int | str) -> list[str]:
    """The fields of a process, or of one of its threads, in /proc from its state
    on; see proc_pid_stat(5)."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _exists(pid: int) -> bool:
    """True if a process with this number exists, whatever its owner."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is not ours, so it is there
        return True
    return True
