"""A value in memory that forked processes share: one writes it, all may read it."""

from __future__ import annotations

import marshal
from typing import Any, Final, NamedTuple, Self
from zlib import crc32

from django_jobqueue.processes.shared_memory import shared_parts

SIZE: Final = 1 << 20  # bytes of a value; what nobody writes on is not allocated
READS: Final = 100  # tries; a writer that never rests spoils one in a hundred
_HEAD: Final = 64  # bytes
_SEQUENCE, _LENGTHS, _SUMS = 0, 1, 3  # words of the head


class Version(NamedTuple):
    """A value, and the number of the writing that it is of: greater than 0."""

    number: int
    value: Any


class SharedValue:
    """Plain numbers, texts, lists, tuples and dicts.

    There are two places, and the writer takes them in turns: it writes behind the value
    that others read, and the sequence number then says which one holds. So a writer
    that is killed at any moment leaves a whole value. A reader that was overtaken twice
    meanwhile sees a wrong checksum, and reads again.
    """

    def __init__(self, size: int = SIZE, memory: memoryview | None = None) -> None:
        self._size = size
        if memory is None:
            (memory,) = shared_parts(1, _HEAD + 2 * size)
        self._memory = memory
        self._words = memory[:_HEAD].cast("q")  # written as a whole

    @classmethod
    def several(cls, count: int) -> list[Self]:
        """So many values."""
        return [cls(SIZE, memory) for memory in shared_parts(count, _HEAD + 2 * SIZE)]

    def write(self, value: Any) -> bool:
        """Replace the value; False if it has no room, and then the old one stays."""
        content = marshal.dumps(value)
        if len(content) > self._size:
            return False
        sequence = self._words[_SEQUENCE] + 1
        place = sequence % 2
        start = self._start(place)
        self._memory[start : start + len(content)] = content
        self._words[_LENGTHS + place] = len(content)
        self._words[_SUMS + place] = _checksum(sequence, content)
        self._words[_SEQUENCE] = sequence
        return True

    @property
    def number(self) -> int:
        """The number of the last writing; 0 if there was none."""
        return self._words[_SEQUENCE]

    def read(self) -> Any:
        """The last value that was written whole; None if there is none."""
        version = self.version()
        return None if version is None else version.value

    def version(self) -> Version | None:
        """The last value with its number; None if there is none."""
        for _ in range(READS):
            sequence = self._words[_SEQUENCE]
            if not sequence:
                return None
            place = sequence % 2
            start = self._start(place)
            length = self._words[_LENGTHS + place]
            content = bytes(self._memory[start : start + length])
            if self._words[_SUMS + place] == _checksum(sequence, content):
                return Version(sequence, marshal.loads(content))  # noqa: S302  # we wrote it
        return None

    def clear(self) -> None:
        """There is no value any more. To be called when nobody writes."""
        self._words[_SEQUENCE] = 0

    def _start(self, place: int) -> int:
        return _HEAD + place * self._size


def _checksum(sequence: int, content: bytes) -> int:
    """Of both: the same content with another number is another value."""
    return crc32(content, sequence & 0xFFFFFFFF)
