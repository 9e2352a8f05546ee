"""A Redis server for one trial, with the persistence that it has by default."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Final

from benchmarks.processes import Failed, cpu, until

COMMAND: Final = "redis-server"
START: Final = 10.0  # seconds


def is_installed() -> bool:
    """Whether there is a Redis on this machine."""
    return shutil.which(COMMAND) is not None


def version() -> str:
    """Of the Redis that is installed: ``7.0.15``."""
    done = subprocess.run([COMMAND, "--version"], capture_output=True, text=True)
    words = dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)
    return words.get("v", "")


class Redis:
    """A server in a folder, reached through a Unix socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._socket = folder / "socket"
        # No configuration file, so all but this is its default, also `save`.
        self._process = subprocess.Popen(
            [COMMAND, "--port", "0", "--unixsocket", self._socket, "--dir", folder],
            stdout=subprocess.DEVNULL,
        )
        if not until(self._socket.exists, START):
            self.close()
            raise Failed(f"Redis did not start within {START:g} s.")

    def env(self) -> dict[str, str]:
        """By this variable the clients find it."""
        return {"BENCH_REDIS": str(self._socket)}

    def number(self, commands: str) -> int:
        """The sum of the integers that these commands answer; ``;`` parts them."""
        return sum(int(self._ask(command)[0][1:]) for command in commands.split(";"))

    def counters(self) -> tuple[int, int]:
        """Commands that it has processed; it has no blocks."""
        name = "total_commands_processed:"
        (found,) = (s for s in self._ask("INFO stats") if s.startswith(name))
        return int(found.removeprefix(name)), 0

    def settle(self) -> None:
        """There is nothing to write out."""

    def cpu(self) -> float:
        """CPU seconds until now."""
        return cpu(self._process.pid)

    def close(self) -> None:
        """End it at once, and forget its data."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, command: str) -> list[str]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self._socket))
            connection.sendall(f"{command.strip()}\r\nQUIT\r\n".encode())
            parts = iter(lambda: connection.recv(65_536), b"")
            return b"".join(parts).decode().split("\r\n")
