"""Memory that forked processes share, of which only what is written on costs any."""

from __future__ import annotations

import mmap
import os
from typing import Final

SMALL: Final = 1 << 16  # bytes that may be reserved at once
ALIGNED: Final = 64  # bytes


def shared_parts(count: int, size: int) -> list[memoryview]:
    """Memory for this process and those that it forks later, in so many parts of this
    size: one mapping, since a process with hundreds of them takes longer to fork."""
    step = -(-size // ALIGNED) * ALIGNED
    memory = memoryview(_mapping(count * step))
    return [memory[start : start + size] for start in range(0, count * step, step)]


def _mapping(size: int) -> mmap.mmap:
    """An anonymous mapping counts as a whole where the kernel promises no more memory
    than there is (``vm.overcommit_memory=2``), a file only where it was written on: of
    a host with a port for metrics, 1 MB instead of 500 MB."""
    if size > SMALL and hasattr(os, "memfd_create"):
        try:
            file = os.memfd_create("jobqueue", os.MFD_CLOEXEC)
        except OSError:  # forbidden here
            return mmap.mmap(-1, size)
        try:
            os.ftruncate(file, size)
            return mmap.mmap(file, size)
        finally:
            os.close(file)
    return mmap.mmap(-1, size)
