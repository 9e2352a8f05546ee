"""In no order of events does a job run twice, is a limit exceeded, or is a slot free
for long beside a job that may run.

Dispatchers, claimers, scanners and relays are real; see ``world.py`` and ``hosts.py``
for what is not. A history that fails is played again by its seed.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from django_jobqueue.store.queue.keyed_turn import KeyedTurn
from django_jobqueue.workers.claiming.dispatcher import Dispatcher
from django_jobqueue.workers.claiming.lane_selection import LaneSelection
from tests.simulation.histories import History, play
from tests.simulation.hosts import Patches
from tests.simulation.world import Lock, Row, World, Wrong

SEEDS = 1_000  # of a test
ENOUGH = 10_000  # until a defect is found

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def _model(monkeypatch: Patch) -> Iterator[None]:
    """Without a database. A history leaves circles behind, of which most are freed as
    it ends: the collector would take a third of the time."""
    Patches(monkeypatch)
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(20_000, 50, 1_000)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def ranges(histories: int) -> list[range]:
    return [range(first, first + SEEDS) for first in range(0, histories, SEEDS)]


def play_all(seeds: range) -> None:
    for seed in seeds:
        try:
            play(seed)
        except Wrong as wrong:
            raise AssertionError(f"seed {seed}: {wrong}") from None


@pytest.mark.dear
@pytest.mark.parametrize("seeds", ranges(10_000), ids=str)
def test_what_must_hold_does_in_ten_thousand_histories(seeds: range) -> None:
    play_all(seeds)


@pytest.mark.slow("a million histories")
@pytest.mark.parametrize("first", range(10_000, 1_000_000, 10_000))
def test_what_must_hold_does_in_a_million_histories(first: int) -> None:
    play_all(range(first, first + 10_000))


# Defects of the past, and what each led to.


def forgets_the_others(patch: Patch) -> None:
    """A claim within a limit that took some was taken for all that there is."""

    def record(self: LaneSelection, limited: Any, *, is_limited: bool) -> None:
        self.may_be_asked(limited)

    patch.setattr(LaneSelection, "record_claimed", record)


def waits_without_a_second_look(patch: Patch) -> None:
    """A worker said that it is idle, and did not look for what came before."""
    sleep = Dispatcher._sleep_listening  # private: the look is in it

    def sleep_at_once(self: Any, news: Any, seconds: float) -> None:
        self._heard = news.jobs_heard
        sleep(self, news, seconds)

    # private: as above
    patch.setattr(Dispatcher, "_sleep_listening", sleep_at_once)


def reads_no_further(patch: Patch) -> None:
    """A claim by key looked at so many keys, and none of them had room."""
    # private: the other half of it reads further
    patch.setattr(KeyedTurn, "goes_on", KeyedTurn._wants_more)


def leaves_it_to_others(patch: Patch) -> None:
    """Of those who enqueue at the same time, the first told for all."""
    patch.setattr(History, "leaves_it", True)


def sees_no_locks(patch: Patch) -> None:
    """Two claims took one row."""
    patch.setattr(Row, "is_locked", property(lambda row: False, lambda row, on: None))


def locks_nothing(patch: Patch) -> None:
    """Two claims counted the same jobs."""
    # private: all locks are taken by it
    patch.setattr(World, "_wait_for", lambda world, name: Lock())


FREE = "a slot was free"
DEFECTS: list[tuple[Callable[[Patch], None], str]] = [
    (forgets_the_others, FREE),
    (waits_without_a_second_look, FREE),
    (reads_no_further, FREE),
    (leaves_it_to_others, FREE),
    (sees_no_locks, "runs twice"),
    (locks_nothing, "more jobs run than the limit"),
]


def find(histories: int) -> None:
    for seed in range(histories):
        play(seed)


@pytest.mark.dear
@pytest.mark.parametrize(
    ("defect", "wrong"), DEFECTS, ids=[defect.__name__ for defect, _ in DEFECTS]
)
def test_a_defect_is_found(
    defect: Callable[[Patch], None], wrong: str, monkeypatch: Patch
) -> None:
    defect(monkeypatch)
    with pytest.raises(Wrong, match=wrong):
        find(ENOUGH)
