"""Loads new code into this process: another one tries first whether it starts."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn, Self

from django_jobqueue.processes.forking import flush_output
from django_jobqueue.text.redaction import mask_text

TRIAL_ENDS: Final = 120.0  # seconds
OUTPUT: Final = 65_536  # bytes at its end that are read
LONGEST: Final = 300  # characters of its last line that are kept
CHECK: Final = "--check"  # the flag of runworkers


class Program(NamedTuple):
    """The command line that this process was started with."""

    arguments: tuple[str, ...]

    @classmethod
    def of_this_process(cls) -> Self:
        """That of this process, with the same interpreter."""
        return cls((sys.executable, *sys.orig_argv[1:]))

    def replace_this_process(self, environment: Mapping[str, str]) -> NoReturn:
        """Start it again in the place of this process, which keeps its number."""
        logging.shutdown()
        flush_output()
        os.execve(self.arguments[0], self.arguments, {**os.environ, **environment})


class CodeTrial:
    """The same command in another process, which ends before it would start workers.
    This one has no thread, so it is polled."""

    def __init__(self, program: Program) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._ends_at = time.monotonic() + TRIAL_ENDS
        self._process = subprocess.Popen(
            [*program.arguments, CHECK],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The number of its process, which nobody else may wait for."""
        return self._process.pid

    def problem(self) -> str | None:
        """A sentence if the code does not start, empty if it does; None if that is not
        known yet."""
        code = self._process.poll()
        if code is None and time.monotonic() < self._ends_at:
            return None
        if code is None:
            return f"The code does not start within {TRIAL_ENDS:g} s."
        if code == 0:
            return ""
        return f"The code does not start: {self._last_line() or f'exit code {code}'}"

    def close(self) -> None:
        """End it, if it has not ended."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        self._output.close()

    def _last_line(self) -> str:
        """The last line that it wrote, which names the error, without its secrets."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - OUTPUT))
        lines = self._output.read().decode(errors="replace").split("\n")
        written = [line.strip() for line in lines if line.strip()]
        return mask_text(written[-1])[:LONGEST] if written else ""
