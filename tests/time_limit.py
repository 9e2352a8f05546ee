"""Leaves out tests when there is no time for them.

The tests are to end within minutes, on slow and busy machines too. One variant of
each parametrized test comes first; the others follow until ``JOBQUEUE_TESTS_UNTIL``, in
seconds since 1970, and are skipped after that. On a machine that needs much longer for
the first ones, those that have not begun are skipped too. Without it all are run.
"""

from __future__ import annotations

import os
import time
from collections import Counter

import pytest

ALWAYS = 1  # variants of a test
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
GRACE = 180.0  # seconds in which first variants still begin
UNTIL = float(os.environ.get("JOBQUEUE_TESTS_UNTIL", "inf"))
FURTHER = pytest.StashKey[bool]()


@pytest.hookimpl(trylast=True)  # when they are mixed, and chosen by -m and -k
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put further variants behind other tests in the part of each process: at first
    each one has so many tests in a row."""
    variants = Counter[str]()
    for item in items:
        test = item.nodeid.partition("[")[0]
        variants[test] += 1
        item.stash[FURTHER] = variants[test] > ALWAYS
    first = [item for item in items if not item.stash[FURTHER]]
    further = [item for item in items if item.stash[FURTHER]]
    items[:] = [
        item
        for number in range(PROCESSES)
        for item in first[number::PROCESSES] + further[number::PROCESSES]
    ]


@pytest.hookimpl(tryfirst=True)  # before fixtures are made
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test if its time is over."""
    if item.stash[FURTHER] and time.time() > UNTIL:
        pytest.skip("there was no time left for further variants")
    if time.time() > UNTIL + GRACE:
        pytest.skip("there was no time left for any test")
