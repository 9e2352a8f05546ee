"""The processes of the demo: the web server and the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
FILES: Final = ROOT / ".demo"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE: Final = 20.0  # seconds; more than the workers' grace
TAIL: Final = 20  # lines of a log that are shown


class Stopped(BaseException):
    """Somebody wants the demo to stop."""


class Died(Exception):
    """A process of the demo ended that should not have; says why."""


def stop_at_signals() -> None:
    """Raise Stopped at the first signal; the next ones change nothing."""

    def stop(number: int, frame: FrameType | None) -> None:
        for each in SIGNALS:
            signal.signal(each, _nothing)
        raise Stopped

    for number in SIGNALS:
        signal.signal(number, stop)


class Process:
    """A command of the project, with a log."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self.log = FILES / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            # In a session of its own: Ctrl-C reaches only us, and we stop the others.
            self._process = subprocess.Popen(
                [sys.executable, "manage.py", *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raise Died if it has ended."""
        code = self._process.poll()
        if code is not None:
            raise Died(self._epitaph(code))

    def wait(self, within: float) -> None:
        """Wait for its end. Raises Died if it ended badly, or not in this time."""
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise Died(f"{self.name} did not end within {within:g} s.") from None
        if code:
            raise Died(self._epitaph(code))

    def stop(self) -> None:
        """End it, in good order if it can."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def _epitaph(self, code: int) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-TAIL:]
        text = "\n".join(f"    {line}" for line in lines)
        return f"{self.name} ended with {code}; the end of {self.log}:\n{text}"


@contextmanager
def running(name: str, *command: str) -> Iterator[Process]:
    """A process that is stopped at the end."""
    process = Process(name, *command)
    try:
        yield process
    finally:
        process.stop()


def pause(seconds: float, *processes: Process) -> None:
    """Wait, as long as all of these live. Raises Died."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for process in processes:
            process.check()
        time.sleep(0.2)


def _nothing(number: int, frame: FrameType | None) -> None:
    """It is being stopped already."""
