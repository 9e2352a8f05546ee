"""Tracebacks of exceptions that a handler raises more than once."""

from __future__ import annotations

from typing import Any

import pytest

from django_jobqueue.models import Failure
from tests.sample import jobs
from tests.support.hand_driven import HandDriven

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("handler", [jobs.fail_with_the_same, jobs.afail_with_the_same])
def test_an_instance_that_is_raised_again_has_the_traceback_of_its_last_raise(
    worker: HandDriven, handler: Any
) -> None:
    made = handler.enqueue()
    worker.work()
    failures = Failure.objects.filter(job_id=made.id).order_by("pk")
    first, *others = failures.values_list("traceback", "frames", "fingerprint")
    assert "the same instance" in first[0]
    assert len(others) == 2
    assert others == [first, first]
