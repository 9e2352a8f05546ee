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
)
from benchmarks.questions.base import Question

QUESTIONS: Final[tuple[Question, ...]] = (
    drain.QUESTION,
    pickup.QUESTION,
    enqueue.QUESTION,
    sleeps.QUESTION,
    memory.QUESTION,
    crowded.QUESTION,
    crash.QUESTION,
    stale.QUESTION,
)
