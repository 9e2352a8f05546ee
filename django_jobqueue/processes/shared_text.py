"""A text in memory that forked processes share: one writes it, the others read it."""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import Final, NamedTuple

_HEAD: Final = struct.Struct("@qqq")  # number, length in bytes, CRC-32
_NUMBER: Final = struct.Struct("@q")
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
        self._memory = mmap.mmap(-1, _HEAD.size + size)

    @property
    def number(self) -> int:
        """The number of the last writing; 0 if there was none."""
        return int(_NUMBER.unpack_from(self._memory, 0)[0])

    def write(self, text: str) -> None:
        """Replace the text. Only one process does so at a time; its predecessor may
        have died while it wrote. Raises ValueError if there is no room."""
        content = text.encode()
        if len(content) > self._size:
            raise ValueError(f"{len(content):,} bytes are more than {self._size:,}.")
        odd = self.number | 1
        _NUMBER.pack_into(self._memory, 0, odd)
        self._memory[_HEAD.size : _HEAD.size + len(content)] = content
        _HEAD.pack_into(self._memory, 0, odd, len(content), zlib.crc32(content))
        _NUMBER.pack_into(self._memory, 0, odd + 1)

    def read(self) -> Version | None:
        """The text as it was written last; None if there is none, or none that is
        whole at this moment."""
        for _ in range(TRIES):
            number, length, checksum = _HEAD.unpack_from(self._memory, 0)
            content = self._memory[_HEAD.size : _HEAD.size + length]
            is_whole = number and not number % 2 and number == self.number
            if is_whole and zlib.crc32(content) == checksum:
                return Version(number, content.decode())
        return None
