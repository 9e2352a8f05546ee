"""How much of their time slots were idle, from a journal."""

from __future__ import annotations

import pytest

from benchmarks.idle_slots import IdleSlots, Note, idle_slots


def run(start: int, end: int, key: str) -> list[Note]:
    return [(start, "start", key), (end, "end", key)]


def test_slots_that_are_always_taken_are_not_idle() -> None:
    notes = [
        *run(0, 10, "a"),
        *run(0, 20, "b"),
        *run(10, 30, "a"),
        *run(20, 30, "b"),
    ]
    assert idle_slots(notes, slots=2, limit=1) == IdleSlots(share=0.0, most=1)


def test_a_slot_is_idle_while_a_key_with_jobs_is_below_its_limit() -> None:
    """From 10 to 15 one of two slots, of 2 × 40 in all."""
    notes = [
        *run(0, 10, "a"),
        *run(0, 40, "b"),
        *run(15, 40, "c"),
        *run(40, 50, "a"),
    ]
    assert idle_slots(notes, slots=2, limit=1).share == pytest.approx(5 / 80)


def test_a_slot_that_no_key_permits_to_be_used_is_not_idle() -> None:
    """The second slot waits for the end of ``a`` from 10 on."""
    notes = [*run(0, 40, "a"), *run(0, 10, "b"), *run(40, 50, "a")]
    assert idle_slots(notes, slots=2, limit=1) == IdleSlots(share=0.0, most=1)


def test_as_many_slots_are_idle_as_there_are_permitted_jobs() -> None:
    """From 10 to 20 three slots are free, and only two jobs may run."""
    notes = [
        *run(0, 20, "a"),
        *run(0, 10, "b"),
        *run(0, 10, "c"),
        *run(0, 10, "d"),
        *run(20, 30, "b"),
        *run(20, 30, "c"),
    ]
    found = idle_slots(notes, slots=4, limit=1)
    assert found.share == pytest.approx(2 * 10 / (4 * 20))


def test_the_most_of_a_key_at_once_is_seen() -> None:
    notes = [*run(0, 10, "a"), *run(5, 15, "a"), *run(20, 30, "a")]
    assert idle_slots(notes, slots=1, limit=1).most == 2


def test_the_time_before_all_slots_are_taken_does_not_count() -> None:
    notes = [*run(0, 100, "a"), *run(50, 60, "b"), *run(60, 70, "b")]
    assert idle_slots(notes, slots=2, limit=1).share == 0.0


def test_slots_that_were_never_all_taken_are_refused() -> None:
    with pytest.raises(ValueError, match="never all taken"):
        idle_slots(run(0, 10, "a"), slots=2, limit=1)
