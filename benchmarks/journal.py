"""The file into which every benchmarked handler writes what it did, and when.

A record is 24 bytes, written by one append, so that handlers of many processes share a
file and its size counts the jobs. Times are CLOCK_MONOTONIC, the same in every process.
"""

from __future__ import annotations

import asyncio
import os
import struct
import time
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

VARIABLE: Final = "BENCH_JOURNAL"  # in the environment of every worker
_RECORD: Final = struct.Struct("<qqii")
_files: dict[int, int] = {}  # by process


class Kind(IntEnum):
    """What a handler says."""

    START = 0
    END = 1


class Record(NamedTuple):
    """One line of the journal."""

    number: int  # of the job
    at: int  # ns
    pid: int
    kind: int


def mark(number: int, kind: int) -> None:
    """Write a record; costs about 2 µs."""
    pid = os.getpid()
    if pid not in _files:
        _files[pid] = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND)
    os.write(_files[pid], _RECORD.pack(number, time.monotonic_ns(), pid, kind))


def work(number: int, ms: int) -> None:
    """The body of every sync handler. A job of 0 ms only says that it started."""
    mark(number, Kind.START)
    if ms:
        time.sleep(ms / 1_000)
        mark(number, Kind.END)


async def awork(number: int, ms: int) -> None:
    """The body of every async handler."""
    mark(number, Kind.START)
    if ms:
        await asyncio.sleep(ms / 1_000)
        mark(number, Kind.END)


class Journal:
    """What the handlers of one trial wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self.path.stat().st_size // _RECORD.size

    def has(self, records: int) -> bool:
        """Whether there are so many."""
        return len(self) >= records

    def records(self, kind: Kind | None = None, since: int = 0) -> list[Record]:
        """The records of a kind, or all; ``since`` leaves out the first ones."""
        data = self.path.read_bytes()[since * _RECORD.size :]
        whole = data[: len(data) // _RECORD.size * _RECORD.size]
        found = map(Record._make, _RECORD.iter_unpack(whole))
        return [record for record in found if kind is None or record.kind == kind]

    def starts(self) -> dict[int, list[int]]:
        """When each job started, in ns; oftener than once if it was started again."""
        found: dict[int, list[int]] = {}
        for record in sorted(self.records(Kind.START), key=lambda r: r.at):
            found.setdefault(record.number, []).append(record.at)
        return found

    def pids(self) -> set[int]:
        """The processes that ran handlers."""
        return {record.pid for record in self.records(Kind.START)}
