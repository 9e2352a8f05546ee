"""How much of their time slots were idle, from a journal."""

from __future__ import annotations

import pytest

from benchmarks.idle_slots import IdleSlots, Note, idle_slots

Runs = list[tuple[int, int, str]]

# Runs from a moment to another of a key, with a limit of one job for each key; how
# many slots there are, and which share of their time they were idle.
CASES: dict[str, tuple[Runs, int, float]] = {
    "always taken": ([(0, 10, "a"), (0, 20, "b"), (10, 30, "a"), (20, 30, "b")], 2, 0),
    "idle from 10 to 15": (
        [(0, 10, "a"), (0, 40, "b"), (15, 40, "c"), (40, 50, "a")],
        *(2, 5 / 80),
    ),
    "no key permits it to be used from 10 on": (
        [(0, 40, "a"), (0, 10, "b"), (40, 50, "a")],
        *(2, 0),
    ),
    "from 10 to 20 three are free, and only two jobs may run": (
        [(0, 20, "a"), *((0, 10, key) for key in "bcd"), (20, 30, "b"), (20, 30, "c")],
        *(4, 2 * 10 / (4 * 20)),
    ),
    "not all were taken before": ([(0, 100, "a"), (50, 60, "b"), (60, 70, "b")], 2, 0),
}


def found(runs: Runs, slots: int) -> IdleSlots:
    notes: list[Note] = []
    for start, end, key in runs:
        notes += [(start, "start", key), (end, "end", key)]
    return idle_slots(notes, slots=slots, limit=1)


def test_a_slot_is_idle_while_a_key_with_jobs_is_below_its_limit() -> None:
    for name, (runs, slots, share) in CASES.items():
        idle = found(runs, slots)
        assert (idle.share, idle.most) == (pytest.approx(share), 1), name
    assert found([(0, 10, "a"), (5, 15, "a"), (20, 30, "a")], slots=1).most == 2
    with pytest.raises(ValueError, match="never all taken"):
        found([(0, 10, "a")], slots=2)
