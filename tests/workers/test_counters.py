"""What workers count of their attempts."""

from __future__ import annotations

import pytest

from django_jobqueue.models import Rollup
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

COLUMNS = ("succeeded", "failed", "retried", "other")


@pytest.mark.parametrize(
    ("word", "column"),
    [
        ("", "succeeded"),
        ("fail", "failed"),
        ("retry", "retried"),
        ("snooze", "other"),
        ("cancel", "other"),
    ],
)
def test_each_attempt_is_counted_once_as_what_it_came_to(
    worker: HandDriven, word: str, column: str
) -> None:
    for number in range(3):
        if word:
            jobs.say.enqueue(word)
        else:
            jobs.add.enqueue(number)
    worker.work()
    worker.worker.completer.close()  # writes what was counted

    rows = list(Rollup.objects.all())
    counted = {name: sum(getattr(row, name) for row in rows) for name in COLUMNS}
    assert counted == {**dict.fromkeys(COLUMNS, 0), column: 3}
    assert sum(sum(row.run_histogram) for row in rows) == 3
    assert sum(sum(row.wait_histogram) for row in rows) == 3
