"""Commands that are started, watched and ended with all their descendants."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Final

import psutil

from benchmarks.environment import ROOT

KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "TZ")  # of our own environment
RESTS: Final = 20  # times as long as a look
TAIL: Final = 15  # lines of a log that are shown
MIB: Final = 2**20


class Failed(Exception):
    """A process died, or was too slow; says which, and its last words."""


def environment(**extra: str) -> dict[str, str]:
    """What a process of the benchmarks finds in its environment."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **extra}


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command line and what it finds in its environment."""

    arguments: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Memory:
    """Of some processes together, in MiB."""

    rss: float
    pss: float  # shared pages in equal parts


def memory(pids: Iterable[int]) -> Memory:
    """The memory of these processes; one that has ended uses none."""
    rss = pss = 0
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            info: Any = psutil.Process(pid).memory_full_info()
            rss += info.rss
            pss += info.pss
    return Memory(rss / MIB, pss / MIB)


def cpu(pid: int) -> float:
    """CPU seconds of a process, its children and those that it has reaped."""
    spent = 0.0
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                spent += sum(process.cpu_times()[:4])
    return spent


class Workers:
    """The worker processes of one system, started by its own command line."""

    def __init__(
        self, commands: Iterable[Command], env: Mapping[str, str], log: Path
    ) -> None:
        self._log = log
        self._started: list[subprocess.Popen[bytes]] = []
        with log.open("ab") as out:
            for command in commands:
                # In a session of its own: one signal ends it with its descendants,
                # and Ctrl-C reaches only us.
                process = subprocess.Popen(
                    command.arguments,
                    env={**env, **command.env},
                    cwd=log.parent,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
                self._started.append(process)

    def started(self) -> set[int]:
        """The processes of the commands themselves."""
        return {process.pid for process in self._started}

    def pids(self) -> list[int]:
        """Of all of them, with their descendants."""
        found = []
        for process in self._started:
            with suppress(psutil.NoSuchProcess):
                children = psutil.Process(process.pid).children(recursive=True)
                found += [process.pid, *(child.pid for child in children)]
        return found

    def cpu(self) -> float:
        """CPU seconds of all of them."""
        return sum(cpu(process.pid) for process in self._started)

    def check(self) -> None:
        """Raise Failed if one of them has ended."""
        for process in self._started:
            code = process.poll()
            if code is not None:
                raise Failed(f"A worker ended with {code}:\n{self.last_words()}")

    def last_words(self) -> str:
        """The end of what they wrote."""
        lines = self._log.read_text(errors="replace").splitlines()[-TAIL:]
        return "\n".join(f"    {line}" for line in lines)

    def kill(self) -> None:
        """End each whole tree at once, as a host that vanishes."""
        for process in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self._started:
            process.wait()


def until(
    condition: Callable[[], Any],
    within: float,
    *,
    workers: Workers | None = None,
    every: float = 0.01,
    at_least_every: float = inf,
) -> bool:
    """Whether the condition came to hold in this many seconds.

    A look that takes long is taken seldom, lest it slow down what is measured: beside
    100,000 dead rows one took a third of the server's time. Raises Failed if one of the
    workers ends meanwhile.
    """
    deadline = time.monotonic() + within
    while True:
        began = time.monotonic()
        if condition():
            return True
        now = time.monotonic()
        if now > deadline:
            return False
        if workers is not None:
            workers.check()
        time.sleep(max(every, min(at_least_every, RESTS * (now - began))))


def wait_for(
    condition: Callable[[], Any], within: float, workers: Workers, what: str
) -> None:
    """Wait until the condition holds. Raises Failed if it does not in time."""
    if not until(condition, within, workers=workers):
        raise Failed(f"Not within {within:g} s: {what}\n{workers.last_words()}")
