"""The report of a running attempt, in memory: progress and lines."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Final, NamedTuple

from django_jobqueue.text.sanitizing import clean, text_of

MOST_LINES: Final = 200  # the last ones
MOST_BYTES: Final = 64 * 1024  # of their texts
LINE_BYTES: Final = 4_000
NOTE_BYTES: Final = 500
TAIL_BYTES: Final = 8_000  # of what a failure keeps
LONG: Final = 10_000  # characters of a text that is cut at once
LEVELS: Final = ("debug", "info", "warning", "error", "critical")

Line = tuple[float, str, str]  # seconds since 1970, level, text


class TakenReport(NamedTuple):
    """The report of an attempt so far, ready to be stored."""

    done: float | None = None
    total: float | None = None
    note: str = ""
    lines: tuple[Line, ...] = ()
    dropped: int = 0  # lines that there was no room for
    queries: int | None = None
    query_ms: float | None = None
    spent: int = 0  # of its rate, since this was taken last


def _nobody() -> None:
    """Nobody writes it."""


def _no_secrets() -> Collection[str]:
    return ()


class Report:
    """Notes of one attempt. To add one is cheap; who writes them asks with ``take``.

    Any thread may add. Secrets are masked when it is taken, off the handler's time.
    """

    __slots__ = (
        "_changed",
        "_count",
        "_done",
        "_lines",
        "_lock",
        "_new",
        "_note",
        "_queries",
        "_secrets",
        "_size",
        "_spent",
        "_has_content",
        "is_changed",
    )

    def __init__(
        self,
        changed: Callable[[], None] = _nobody,
        secrets: Callable[[], Collection[str]] = _no_secrets,
    ) -> None:
        self.is_changed = False  # since it was taken
        self._changed = changed  # called at the first change after that
        self._secrets = secrets
        self._done: tuple[float | None, float | None] = (None, None)
        self._note = ""
        self._queries: tuple[int | None, float | None] = (None, None)
        self._lock = threading.Lock()  # of the lines
        self._new: deque[Line] = deque(maxlen=MOST_LINES)  # as the handler gave them
        self._lines: deque[Line] = deque()
        self._size = 0  # bytes of the kept ones
        self._count = 0  # lines ever
        self._spent = 0  # of its rate, besides what the claim spent
        self._has_content = False  # has something besides that

    def __repr__(self) -> str:
        done, total = self._done
        # Not the note and the lines, which may have secrets.
        return f"<Report: done={done}, total={total}, lines={self._count}>"

    def progress(
        self, done: float | None, total: float | None, note: str | None
    ) -> None:
        """Note how far it is; None is as before. Raises ValueError for what is no
        finite number."""
        if done is not None or total is not None:
            for number in (done, total):
                if number is not None and not math.isfinite(number):
                    raise ValueError(f"Progress is a finite number, not {number!r}.")
            was, of = self._done
            self._done = (was if done is None else done, of if total is None else total)
        if note is not None:
            self._note = note
        self._touch()

    def log(self, text: object, level: str) -> None:
        """Add a line. Raises ValueError for an unknown level."""
        if level not in LEVELS:
            raise ValueError(f"There is no level {level!r}: {', '.join(LEVELS)}.")
        line = text if isinstance(text, str) else text_of(text)
        if len(line) > LONG:
            line = clean(line, LINE_BYTES, self._secrets())
        with self._lock:
            self._new.append((time.time(), level, line))
            self._count += 1
        self._touch()

    def count_queries(self, queries: int, seconds: float) -> None:
        """Note how many queries were sent to databases, and their time."""
        self._queries = (queries, seconds * 1_000)
        self._touch()

    def spend(self, units: int) -> None:
        """Note that it took so much more of its rate; less if it is negative."""
        with self._lock:
            self._spent += units
        self._touch(content=False)

    @property
    def has_content(self) -> bool:
        """True if it has told anything to store, besides what it spent."""
        return self._has_content

    def take(self) -> TakenReport:
        """Its current report."""
        self.is_changed = False
        done, total = self._done
        queries, query_ms = self._queries
        lines = self._keep()
        with self._lock:
            spent, self._spent = self._spent, 0
        return TakenReport(
            done=None if done is None else float(done),
            total=None if total is None else float(total),
            note=self._note and clean(text_of(self._note), NOTE_BYTES, self._secrets()),
            lines=lines,
            dropped=self._count - len(lines),
            queries=queries,
            query_ms=query_ms,
            spent=spent,
        )

    def tail(self) -> str:
        """The last lines as text, with times in UTC."""
        shown = [
            f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S} {level.upper()} {text}"
            for moment, level, text in self._keep()
        ]
        size = 0
        for first in range(len(shown) - 1, -1, -1):
            size += len(shown[first].encode()) + 1
            if size > TAIL_BYTES:
                return "\n".join(shown[first + 1 :])
        return "\n".join(shown)

    def _touch(self, *, content: bool = True) -> None:
        self._has_content = self._has_content or content
        if not self.is_changed:
            self.is_changed = True
            self._changed()

    def _keep(self) -> tuple[Line, ...]:
        """Mask the new lines and put them to the others; the oldest ones go."""
        with self._lock:
            for moment, level, text in self._new:
                masked = clean(text, LINE_BYTES, self._secrets())
                self._lines.append((moment, level, masked))
                self._size += len(masked.encode())
            self._new.clear()
            while len(self._lines) > MOST_LINES or self._size > MOST_BYTES:
                _, _, gone = self._lines.popleft()
                self._size -= len(gone.encode())
            return tuple(self._lines)
