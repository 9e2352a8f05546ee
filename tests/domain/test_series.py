"""Counts by metric and labels."""

from __future__ import annotations

import marshal

from django_jobqueue.domain.series import Series, added, summed


def test_counts_of_the_same_labels_are_added_up() -> None:
    first: Series = {"jobs": {("a",): 1, ("b",): 2}, "waits": {(): ([1, 0], 0.5)}}
    second: Series = {"jobs": {("b",): 3}, "waits": {(): ([1, 2], 1.0)}, "x": {(): 1}}
    total = summed([first, second, {}])
    assert total == {
        "jobs": {("a",): 1, ("b",): 5},
        "waits": {(): ([2, 2], 1.5)},
        "x": {(): 1},
    }
    assert first["jobs"] == {("a",): 1, ("b",): 2}
    total = summed([{"waits": {("a",): added(([1], 0.5), ([2], 0.5))}}] * 2)
    shared = marshal.loads(marshal.dumps(total))  # it is plain enough for that
    assert shared == {"waits": {("a",): ([6], 2.0)}}
