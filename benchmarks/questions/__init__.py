"""The questions, one a file, in the order in which they are asked."""

from __future__ import annotations

from typing import Final

from benchmarks.questions import (
    crash,
    crowded,
    drain,
    enqueue,
    memory,
    pickup,
    sleeps,
    stale,
    start,
    steady,
    wal,
)
from benchmarks.questions.base import Question

QUESTIONS: Final[tuple[Question, ...]] = (
    drain.QUESTION,
    pickup.QUESTION,
    enqueue.QUESTION,
    sleeps.QUESTION,
    steady.QUESTION,
    crowded.QUESTION,
    stale.QUESTION,
    wal.QUESTION,
    memory.QUESTION,
    start.QUESTION,
    crash.QUESTION,
)
