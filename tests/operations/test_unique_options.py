"""Options of unique jobs that contradict each other."""

from __future__ import annotations

import operator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from django_jobqueue import InvalidArguments, job
from django_jobqueue.models import QueuedJob
from tests.sample import jobs
from tests.support.tables import differing, refusal

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)


WAIT = {"unique": True, "debounce": 30}
REPLACING = {"unique": True, "on_duplicate": "replace"}
OF_TYPES: list[tuple[dict[str, Any], str]] = [
    ({"debounce": 30}, "debounce needs unique: the parameters by which"),
    ({"unique_until": 30}, "unique_until needs unique: the parameters by which"),
    ({"on_duplicate": "return"}, "on_duplicate needs unique: the parameters by"),
    ({"unique": True, "debounce_max": 5}, "debounce_max limits debounce, which"),
    ({**WAIT, "debounce_max": 5}, "debounce_max must be at least as long as"),
    ({**WAIT, "on_duplicate": "raise"}, "so on_duplicate cannot be 'raise'."),
    ({**WAIT, "unique_until": 60}, "debounce replaces the data of a job that"),
    ({**WAIT, "unique_until": "finished"}, "can only be 'started', not 'finished'"),
    (
        {**REPLACING, "unique_until": "forever"},
        "on_duplicate='replace' replaces the data of a job that waits to start, so",
    ),
]
OF_JOBS: list[tuple[Any, str]] = [
    (jobs.add.using(debounce=30), "debounce needs using(unique_key=…) or @job("),
    (jobs.add.using(unique_until=30), "unique_until needs using(unique_key=…) or"),
    (jobs.add.using(on_duplicate="return"), "on_duplicate needs using(unique_key"),
    (jobs.settle.using(run_after=SECOND), "run_after and debounce both say when"),
    (jobs.settle.using(on_duplicate="return"), "on_duplicate cannot be 'return'"),
    (jobs.settle.using(unique_until="finished"), "unique_until can only be 'start"),
    (jobs.settle.using(debounce_max=5), "debounce_max must be at least as long"),
    (jobs.render.using(id=uuid4()), "id makes an enqueue at most once by itself"),
    (jobs.remind.using(id=uuid4()), "id makes an enqueue at most once by itself"),
    (jobs.greet_once.using(debounce=5), "debounce replaces the data of a job"),
]


def test_options_that_contradict_each_other_are_refused() -> None:
    def said(options: dict[str, Any]) -> str:
        declare: Any = job(name="words.contradiction", **options)
        return refusal(ImproperlyConfigured, lambda: declare(handler_of_contradictions))

    assert differing(OF_TYPES, said, operator.contains) == []


def handler_of_contradictions(a: int = 0) -> None: ...


@pytest.mark.parametrize("mode", ["queue", "immediate"])
def test_options_of_a_job_that_contradict_its_type_are_refused(mode: str) -> None:
    with override_settings(JOBQUEUE={"MODE": mode}):
        assert differing(OF_JOBS, refused, operator.contains) == []
    assert not QueuedJob.objects.exists()


def refused(handler: Any) -> str:
    return refusal(InvalidArguments, lambda: handler.enqueue(1))
