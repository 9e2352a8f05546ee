"""Commands of ``manage.py``, and other programs, in processes of their own.

Most are forked from a process in which everything is imported, which saves nine tenths
of a start; see ``prepared_process.py``. Those whose settings differ by the environment
are executed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, Protocol

from django.db import connections

ROOT = Path(__file__).resolve().parent.parent.parent
MARK = "STARTED_FOR"  # in the environment, with the file of the output
PREPARED = "tests.support.prepared_process"
# What a process cannot read again after it has loaded its apps.
READ_AT_START = ("DJANGO_SETTINGS_MODULE", "JOBQUEUE_THEME")


class Process(Protocol):
    """What a process of either sort can be asked."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def poll(self) -> int | None: ...
    def send_signal(self, number: int) -> None: ...
    def kill(self) -> None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class ForkedProcess:
    """A function of a module that runs in a fork of the prepared process."""

    def __init__(self, function: Callable[..., object], *arguments: Any) -> None:
        self._process = _fork_server().Process(target=function, args=arguments)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative number of the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once, but not what it has started."""
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; returns the exit code. Raises TimeoutExpired."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        return code


def start_command(
    *arguments: str,
    output: Path,
    errors: Path | None = None,
    within: tuple[str, ...] = (),
    **env: str,
) -> Process:
    """Start ``manage.py`` with these arguments, as the leader of a session of its own,
    on the database of the test. What it writes is added to files; ``within`` is a
    command that starts it."""
    environment = {**worker_environment(), **env, MARK: str(output)}
    errors = errors or output
    if not within and not any(name in env for name in READ_AT_START):
        from tests.support.prepared_process import run_command

        return ForkedProcess(
            run_command, [*arguments], environment, str(output), str(errors)
        )
    with output.open("ab") as out, errors.open("ab") as err:
        return subprocess.Popen(
            [*within, sys.executable, "-m", "django", *arguments],
            env=environment,
            cwd=output.parent,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )


def start_code(code: str, output: Path) -> Process:
    """Start a program of this code, as the leader of a session of its own, on the
    database of the test. What it writes is added to a file."""
    from tests.support.prepared_process import run_code

    environment = {**worker_environment(), MARK: str(output)}
    return ForkedProcess(run_code, code, environment, str(output), str(output))


def kill_all(output: Path) -> list[int]:
    """Kill a command and whatever it has started: what writes to its output, or has
    inherited its environment. Returns who was still there."""
    mark = f"{MARK}={output}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            writes = os.readlink(folder / "fd" / "1") == str(output)
            if writes or mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
                os.kill(found[-1], signal.SIGKILL)
    return found


def worker_environment() -> dict[str, str]:
    """The environment in which a process uses this test's database."""
    settings = connections["default"].settings_dict
    host = str(settings["HOST"]).replace("/", "%2F")
    user = f"{settings['USER']}@" if settings["USER"] else ""
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return {
        **os.environ,
        "DATABASE_URL": f"postgresql://{user}{host}{port}/{settings['NAME']}",
        # Of those that are executed; a fork has those of the prepared process.
        "DJANGO_SETTINGS_MODULE": "tests.support.small_settings",
        "PYTHONPATH": str(ROOT),
    }


@cache
def _fork_server() -> ForkServerContext:
    """The prepared process of this test run."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PREPARED])
    before = dict(os.environ)
    os.environ.update(worker_environment(), DJANGO_SETTINGS_MODULE="tests.settings")
    try:
        multiprocessing.forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return context
