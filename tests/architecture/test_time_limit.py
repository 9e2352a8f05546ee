"""Variants of tests are left out when the time is over, others much later."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests import time_limit


class Item:
    """A test that was collected."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid
        self.stash = pytest.Stash()


@pytest.fixture
def items(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two tests, of which one has four variants, as one process orders them."""
    monkeypatch.setattr(time_limit, "PROCESSES", 1)
    made: list[Any] = [Item(f"a.py::one[{n}]") for n in range(4)]
    made.insert(3, Item("b.py::two"))
    time_limit.pytest_collection_modifyitems(made)
    return made


def skipped(items: list[Any]) -> list[str]:
    """Those that do not begin."""
    found = []
    for item in items:
        try:
            time_limit.pytest_runtest_setup(item)
        except pytest.skip.Exception:
            found.append(item.nodeid)
    return found


def test_further_variants_come_last(items: list[Any]) -> None:
    ids = [item.nodeid for item in items]
    assert ids == ["a.py::one[0]", "b.py::two", *(f"a.py::one[{n}]" for n in (1, 2, 3))]


def test_each_process_begins_with_others(
    items: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "PROCESSES", 2)
    time_limit.pytest_collection_modifyitems(items)
    further = [item.stash[time_limit.FURTHER] for item in items]
    assert further == [False, True, True, False, True]


def test_only_they_are_left_out_when_the_time_is_over(
    items: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "UNTIL", time.time() - 1)
    assert skipped(items) == [f"a.py::one[{n}]" for n in (1, 2, 3)]
    monkeypatch.setattr(time_limit, "UNTIL", float("inf"))
    assert skipped(items) == []


def test_all_are_left_out_when_it_is_long_over(
    items: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limit, "UNTIL", 0.0)
    assert skipped(items) == [item.nodeid for item in items]
