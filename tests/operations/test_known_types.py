"""Enqueues remember the row of their job type, for a moment only."""

from __future__ import annotations

import pytest

from django_jobqueue.models import JobType
from tests.sample import jobs
from tests.support.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_operators_new_priority_holds_for_enqueues_a_moment_later() -> None:
    assert jobs.add.enqueue(1).priority == 0
    JobType.objects.filter(name=jobs.add.name).update(priority_override=7)
    # "A moment" is a tenth of a second.
    eventually(lambda: jobs.add.enqueue(1).priority == 7, within=5)
