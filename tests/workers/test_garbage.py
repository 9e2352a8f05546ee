"""How often a worker process looks for garbage in cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from django_jobqueue.workers.worker_main import GARBAGE, collect_seldom


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    """This process's own are back afterwards."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_a_worker_looks_seldom_and_no_oftener_than_the_project_wants() -> None:
    for own, wanted in ((700, GARBAGE), (GARBAGE, GARBAGE), (2 * GARBAGE,) * 2, (0, 0)):
        gc.set_threshold(own, 7, 8)
        collect_seldom()
        assert gc.get_threshold() == (wanted, 7, 8)
