"""Tells a service manager how this ``runworkers`` is: systemd by its notification
socket, anything else by a heartbeat file and a file with the process id."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django_jobqueue.host.host_status import HostStatus

logger = logging.getLogger("django_jobqueue.supervisor")

BEAT: Final = 5.0  # seconds between two heartbeats, at most
STOP_MARGIN: Final = 10.0  # seconds that a stop may take longer than its grace

OF_SYSTEMD: Final = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Liveness:
    """Of one supervisor. The variables of systemd are taken out of the environment, so
    that programs which handlers start do not speak for it."""

    def __init__(
        self,
        *,
        heartbeat_file: str | None,
        grace: float,
        environment: MutableMapping[str, str] = os.environ,
    ) -> None:
        self.environment = {  # for a program that takes the place of this one
            name: environment.pop(name) for name in OF_SYSTEMD if name in environment
        }
        self._address, watchdog, of = (
            self.environment.get(name, "") for name in OF_SYSTEMD
        )
        self._watchdog = 0.0  # seconds between two signs of life; 0 is none
        if watchdog.isdigit() and of in ("", str(os.getpid())):
            self._watchdog = int(watchdog) / 2_000_000
        self._heartbeat = Path(heartbeat_file) if heartbeat_file else None
        self._grace = grace
        self._sent: HostStatus | None = None
        self._was_ready = False
        self._beat_at = 0.0  # time.monotonic() of the last sign of life

    @property
    def longest_pause(self) -> float | None:
        """Seconds within which ``notify`` has to be called again; None is whenever."""
        pauses = [self._watchdog] if self._watchdog and self._address else []
        if self._heartbeat is not None:
            pauses.append(BEAT)
        return min(pauses, default=None)

    def notify(self, observe: Callable[[], HostStatus]) -> None:
        """Say that the supervisor lives, and how it is if that has changed."""
        if not self._address and self._heartbeat is None:
            return
        if self._heartbeat is not None:
            self._touch(self._heartbeat)
        if self._address:
            self._notify_systemd(observe())

    def restart(self) -> None:
        """Another program takes the place of this one, and has a whole interval of the
        watchdog for its start."""
        if self._address and self._watchdog:
            self._send("WATCHDOG=1")

    def end(self) -> None:
        """The supervisor ends: no heartbeat is there any more."""
        if self._heartbeat is not None:
            with contextlib.suppress(OSError):
                self._heartbeat.unlink()

    def _touch(self, path: Path) -> None:
        now = time.monotonic()
        if now - self._beat_at < BEAT / 2 and self._beat_at:
            return
        try:
            path.touch()
        except OSError as error:
            if not self._beat_at:
                logger.warning("The heartbeat file cannot be written: %s", error)
        self._beat_at = now

    def _notify_systemd(self, status: HostStatus) -> None:
        lines = ["WATCHDOG=1"] if self._watchdog else []
        if status.is_ready and not self._was_ready:
            self._was_ready = True
            lines.append("READY=1")
        if status.is_restarting and not (self._sent and self._sent.is_restarting):
            # After STOPPING=1 systemd would kill a process that goes on.
            now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1_000
            lines += ["RELOADING=1", f"MONOTONIC_USEC={now}"]
        if status.is_ending and not (self._sent and self._sent.is_ending):
            extra = int((self._grace + STOP_MARGIN) * 1_000_000)
            lines += ["STOPPING=1", f"EXTEND_TIMEOUT_USEC={extra}"]
        if status != self._sent:
            self._sent = status
            lines.append(f"STATUS={status}")
        if lines:
            self._send("\n".join(lines))

    def _send(self, text: str) -> None:
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        # Nobody may wait for systemd, and what it does not hear it can do without.
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender,
        ):
            sender.setblocking(False)
            sender.sendto(text.encode(), address)


class AlreadyRunning(Exception):
    """Another process holds the file with the process id."""


@contextmanager
def pid_file(path: str | None) -> Iterator[None]:
    """Keep this process's id in the file, locked, until the end of the block.

    Raises AlreadyRunning with a sentence, and OSError.
    """
    if path is None:
        yield
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            # Not inherited by forks: children that outlive us hold nothing.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 20).decode(errors="replace").strip()
            raise AlreadyRunning(
                f"Process {holder or '?'} runs already ({path})."
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
        with contextlib.suppress(OSError):
            os.unlink(path)
    finally:
        os.close(descriptor)
