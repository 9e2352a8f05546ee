"""A text in memory that forked processes share: one writes it, the others read it."""

from __future__ import annotations

import mmap
import zlib
from typing import Final, NamedTuple

HEAD: Final = 24  # bytes: number, length of the text in bytes, CRC-32
SIZE: Final = 1 << 16  # bytes; what is not written on takes no memory
TRIES: Final = 3


class Version(NamedTuple):
    """A text, and the number of the writing that it is of: even, greater than 0."""

    number: int
    text: str


class SharedText:
    """No locks: the number is odd while somebody writes, and a reader that sees it odd,
    or changed meanwhile, tries again. The sum is for processors that reorder stores."""

    def __init__(self, size: int = SIZE) -> None:
        self._size = size
        self._memory = mmap.mmap(-1, HEAD + size)
        self._head = memoryview(self._memory)[:HEAD].cast("q")

    @property
    def number(self) -> int:
        """The number of the last writing; 0 if there was none."""
        return self._head[0]

    def write(self, text: str) -> None:
        """Replace the text. Only one process does so at a time; its predecessor may
        have died while it wrote. Raises ValueError if there is no room."""
        content = text.encode()
        if len(content) > self._size:
            raise ValueError(f"{len(content):,} bytes are more than {self._size:,}.")
        odd = self.number | 1
        self._head[0] = odd
        self._memory[HEAD : HEAD + len(content)] = content
        self._head[1], self._head[2] = len(content), zlib.crc32(content)
        self._head[0] = odd + 1

    def read(self) -> Version | None:
        """The text as it was written last; None if there is none, or none that is
        whole at this moment."""
        for _ in range(TRIES):
            number, length, checksum = self._head
            content = self._memory[HEAD : HEAD + length]
            is_whole = number and not number % 2 and number == self.number
            if is_whole and zlib.crc32(content) == checksum:
                return Version(number, content.decode())
        return None
