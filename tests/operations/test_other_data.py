"""Data that are given after the enqueue, or instead of it, obey the rules of one."""

from __future__ import annotations

import pytest

from django_jobqueue import InvalidArguments, every, operations
from django_jobqueue.contrib.schedules import operations as schedule_operations
from tests.sample import jobs
from tests.store.rows import archive

pytestmark = pytest.mark.django_db


def test_no_data_weigh_more_than_the_burst_wherever_they_are_given() -> None:
    heavy = {"size": 101}  # of a burst of 100
    name = jobs.write_weighed.name
    waiting, over = jobs.write_weighed.enqueue().id, archive(name)
    create = schedule_operations.create
    create("made", name, rule="@daily")
    weighed = jobs.write_weighed.using(weight=101)
    for give in (
        lambda: jobs.write_weighed.enqueue(**heavy),
        lambda: operations.edit_data(waiting, heavy),
        lambda: operations.replay(over, data=heavy),
        lambda: create("new", name, rule="@daily", data=heavy),
        lambda: create("new", name, rule="@daily", options={"weight": 101}),
        lambda: schedule_operations.edit("made", data=heavy),
        lambda: jobs.write_weighed.at(every(hours=1), name="new")(**heavy),
        lambda: weighed.at(every(hours=1), name="newer")(),
    ):
        with pytest.raises(InvalidArguments, match="must be at most 100, the burst"):
            give()
