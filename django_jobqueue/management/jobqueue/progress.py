"""How far something long has come, on a terminal."""

from __future__ import annotations

import logging
import time
from types import TracebackType
from typing import Final

from django_jobqueue.management.jobqueue.console import CLEAR_LINE, Console
from django_jobqueue.text import numbers

audit_log = logging.getLogger("django_jobqueue.operations")

LONGEST: Final = 30  # columns of the bar
SHORTEST: Final = 5


class Progress:
    """A bar that is drawn only where somebody sees it, and leaves nothing behind."""

    def __init__(self, console: Console, title: str, total: int) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._done = 0
        self._began = time.monotonic()
        self._is_drawn = console.is_terminal and console.verbosity > 0
        self._marks = "█░" if console.can_write("█░") else "#-"

    def __enter__(self) -> Progress:
        audit_log.addFilter(self._make_room)
        self._draw()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        audit_log.removeFilter(self._make_room)
        if self._is_drawn:
            self._write(CLEAR_LINE)

    def advance(self, count: int) -> None:
        """So much more is done."""
        self._done += count
        self._draw()

    def _make_room(self, record: logging.LogRecord) -> bool:
        """The log may be on the same terminal; the bar is back after the next step."""
        if self._is_drawn:
            self._write(CLEAR_LINE)
        return True

    def _draw(self) -> None:
        if self._is_drawn and (self._total or self._done):
            self._write(CLEAR_LINE + self._line())

    def _line(self) -> str:
        # There may be more to do than was counted before.
        total = max(self._total, self._done)
        share = self._done / total
        counts = f"{numbers.number(self._done)} / {numbers.number(total)}"
        percent = numbers.whole_percent(self._done, total)
        figures = f"{counts}  {percent:3} %{self._left(share)}"
        room = (self._console.width or 80) - len(self._title) - len(figures) - 4
        length = min(LONGEST, room)
        if length < SHORTEST:
            return figures
        full = int(length * share)
        bar = self._marks[0] * full + self._marks[1] * (length - full)
        return f"{self._title} {bar} {figures}"

    def _left(self, share: float) -> str:
        elapsed = time.monotonic() - self._began
        left = elapsed / share * (1 - share) if share else 0
        return (
            f"  {numbers.span(round(left))} left" if elapsed > 1 and left >= 1 else ""
        )

    def _write(self, text: str) -> None:
        self._console.print(text, ending="")
        self._console.stdout.flush()
