"""Memory that forked processes share."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from django_jobqueue.processes.attempt_table import AttemptTable
from django_jobqueue.processes.shared_memory import shared_parts

MANY: int = 40_000_000  # bytes


def test_parts_are_apart_and_shared_with_forked_processes() -> None:
    for size in (9, 5_000, 1 << 20):
        parts = shared_parts(3, size)
        pid = os.fork()
        if pid == 0:
            for number, part in enumerate(parts, start=1):
                part[:] = bytes([number]) * size
            os._exit(0)
        os.waitpid(pid, 0)
        assert [bytes(part) for part in parts] == [bytes([n]) * size for n in (1, 2, 3)]


def resident() -> int:
    """Kilobytes that were written on of large memory of this kind."""
    text = Path("/proc/self/smaps").read_text()
    found = re.findall(r"memfd:jobqueue.*\n(?:Size:.*\n)(?:.*\n)*?Rss: +(\d+) kB", text)
    return sum(map(int, found))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_only_what_is_written_on_takes_memory() -> None:
    """Also of what is promised: anonymous memory would count as a whole where the
    kernel promises no more than there is."""
    before = resident()
    tables = AttemptTable.several(200, MANY // 32 // 200)
    assert resident() - before <= 4
    tables[7].row(1)
    assert 4 <= resident() - before <= 20


def test_without_a_file_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(name: str, flags: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "memfd_create", forbidden, raising=False)
    (part,) = shared_parts(1, 1 << 20)
    part[-1] = 7
    assert part[-1] == 7
