"""What wakes a process of runworkers that rests."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field

from django_jobqueue.processes.readable import readable


class Bell:
    """Rung from any thread, and any process that was forked after it was made; one
    process waits for it. Programs that these start do not inherit it."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        for end in (self._reader, self.writer):
            os.set_blocking(end, False)

    def ring(self) -> None:
        """Wake whoever waits for it, or will."""
        with contextlib.suppress(BlockingIOError):  # full: it rings
            os.write(self.writer, b"r")

    def close(self) -> None:
        """Nobody waits for it any more."""
        os.close(self._reader)
        os.close(self.writer)

    def wait(self, seconds: float, *pipes: int) -> tuple[bool, list[int]]:
        """Wait until it rings, or one of these can be read from.

        Returns whether it rang, and which can. It is silent from now on: whatever it is
        rung for later than this is still to be looked at.
        """
        ready = readable(self._reader, *pipes, within=seconds)
        rang = self._reader in ready
        if rang:
            os.read(self._reader, 1_024)
            ready.remove(self._reader)
        return rang, ready


@dataclass(frozen=True, slots=True)
class Bells:
    """Those of the processes that every runworkers has."""

    supervisor: Bell = field(default_factory=Bell)
    keeper: Bell = field(default_factory=Bell)

    def close(self) -> None:
        """Nobody waits for them any more."""
        self.supervisor.close()
        self.keeper.close()
