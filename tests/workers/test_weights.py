"""Weights of jobs, from the declaration to what they spend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from django_jobqueue import InvalidArguments, PerKey, Rate, current_job, job, operations
from django_jobqueue.models import ArchivedJob, Bucket, QueuedJob, Report
from django_jobqueue.store import job_types
from django_jobqueue.store.connection import DjangoDatabase
from tests.store.rates import gap
from tests.support.hand_driven import HandDriven, Make
from tests.support.rows import archived
from tests.support.tables import differing, refusal
from tests.workers.test_rated_lanes import pass_time

Declare = Callable[..., Any]
BY_TOKENS = Rate(1_000, per=3_600, burst=10, weight="tokens")
PLAIN = Rate(1_000, per=3_600, burst=10)


def complete(prompt: str = "", tokens: Any = 3) -> None: ...


def spends(units: Any = 0) -> None:
    current_job().spend(units)


def owed(handler: Any, rate: Any = BY_TOKENS) -> int:
    bucket = Bucket.objects.get(pk=handler.name)
    return round((bucket.full_at - job_types.clock_time(DjangoDatabase())) / gap(rate))


def test_jobs_start_while_tokens_fit(declare: Declare, make_worker: Make) -> None:
    handler = declare(complete, rate=BY_TOKENS)
    worker = make_worker(threads=9)
    for tokens in (4, 3, 5, 1):
        handler.enqueue(tokens=tokens)

    worker.claim()
    assert worker.held == 2
    assert owed(handler) == 7
    next_starts = worker.dispatcher.lane_selection.next_starts
    assert 0 < next_starts.seconds <= 2 * gap(BY_TOKENS).total_seconds()
    pass_time(2 * gap(BY_TOKENS).total_seconds())
    next_starts.ask_all()
    worker.claim()
    assert worker.held == 3


def test_every_enqueue_has_a_weight(declare: Declare, make_worker: Make) -> None:
    rate = Rate(100_000, per=3_600, burst=1_000, weight="tokens")
    handler = declare(complete, rate=rate)
    worker = make_worker(threads=99)
    heavy = handler.using(weight=50)

    handler.enqueue()  # 3
    handler.enqueue(tokens=4)
    heavy.enqueue(tokens=4)
    handler.enqueue_many([{"tokens": 5}, {}])  # 8
    heavy.enqueue_many([{}, {"tokens": 1}])  # 100
    handler.using(unique_key="a").enqueue(tokens=6)
    heavy.using(unique_key="b").enqueue()
    replacing = handler.using(unique_key="c", on_duplicate="replace")
    heavy.using(unique_key="c", on_duplicate="replace").enqueue()
    replacing.enqueue(tokens=7)
    QueuedJob.objects.create(job_type_id=handler.name, data={"tokens": 9})

    worker.claim()
    assert worker.held == 11
    wanted = 3 + 4 + 50 + 8 + 100 + 6 + 50 + 7 + 9
    assert abs(owed(handler, Rate(100_000, per=3_600, burst=1_000)) - wanted) <= 2


def test_replays_and_followers_are_weighed(
    declare: Declare, worker: HandDriven
) -> None:
    handler = declare(complete, rate=BY_TOKENS)
    declare(spends, on_success=handler.using(weight=8)).enqueue()
    worker.work()
    followed = ArchivedJob.objects.get(job_type=handler.name)
    assert followed.weight == 8

    again = operations.replay(followed.id)
    other = operations.replay(followed.id, data={"tokens": 2})
    weights = dict(QueuedJob.objects.values_list("id", "weight"))
    assert weights == {again.id: 8, other.id: None}


def test_what_a_job_used_is_spent(declare: Declare, worker: HandDriven) -> None:
    handler = declare(spends, rate=Rate(1_000, per=3_600, burst=10, weight=True))
    for weight, units in ((2, 5), (3, -3)):
        handler.using(weight=weight).enqueue(units=units)
        worker.work()
        assert owed(handler) == 7
    assert not Report.objects.exists()  # it has told nothing else

    for bad in (1.5, True, "2", None):
        handler.using(weight=1, max_attempts=1).enqueue(units=bad)
        pass_time(3_600)
        worker.dispatcher.lane_selection.next_starts.ask_all()
        worker.work()
    refused = [job.error_message for job in archived(status="failed")]
    assert len(refused) == 4
    assert all("What a job spends is a whole number" in why for why in refused)


def test_a_job_without_such_a_rate_spends_in_vain(
    declare: Declare, worker: HandDriven, caplog: pytest.LogCaptureFixture
) -> None:
    handler = declare(spends, rate=PLAIN)
    handler.enqueue(units=5)
    worker.work()
    assert len(archived(status="succeeded")) == 1
    assert f"spend() has no effect: {handler.name} has no rate" in caplog.text
    assert owed(handler) == 1
    with pytest.raises(InvalidArguments, match="has no rate that counts it"):
        handler.using(weight=2).enqueue()


def test_a_wrong_weight_is_refused_where_it_is_declared() -> None:
    by_prompt = PerKey("prompt", rate=Rate(100, per=1, weight="prompt"))
    both = {"rate": Rate(100, per=1, weight="tokens"), "per_key": by_prompt}
    no_name = "weight must be the name of a param"
    rows: list[tuple[dict[str, Any], str]] = [
        ({"rate": Rate(10, per=1, weight="tokns")}, "no parameter. Did you mean"),
        ({"rate": Rate(10, per=1, weight="")}, no_name),
        ({"rate": Rate(10, per=1, weight=3)}, no_name),
        ({"rate": Rate(10, per=1, weight=False)}, no_name),
        (both, "rate and per_key count the weights 'prompt' and 'tokens'. A job has"),
        (
            {"rate": Rate(10, per=1, burst=2, weight="tokens")},
            "the default of tokens must be at most 2",
        ),
    ]

    def declared(options: dict[str, Any]) -> str:
        return refusal(ImproperlyConfigured, lambda: job(**options)(complete))

    assert differing(rows, declared, lambda got, wanted: wanted in got) == []


def test_what_could_never_start_is_refused_at_the_enqueue(declare: Declare) -> None:
    handler = declare(complete, rate=BY_TOKENS)
    whole = "weight must be a whole number of at least 1, not"
    rows: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"tokens": 11}, {}, "tokens must be at most 10, the burst of the rate 1000/"),
        ({"tokens": 0}, {}, "tokens is what the job counts with in its rate, so it mu"),
        ({"tokens": 1.5}, {}, "must be a whole number of at least 1, not 1.5"),
        ({}, {"weight": 11}, "weight must be at most 10, the burst"),
        ({}, {"weight": 0}, f"{whole} 0"),
        ({}, {"weight": True}, f"{whole} Tr"),
    ]

    def one(arguments: dict[str, Any], using: dict[str, Any]) -> str:
        return refusal(
            InvalidArguments, lambda: handler.using(**using).enqueue(**arguments)
        )

    def many(arguments: dict[str, Any], using: dict[str, Any]) -> str:
        return refusal(
            InvalidArguments,
            lambda: handler.using(**using).enqueue_many([{}, arguments]),
        )

    for enqueue in (one, many):
        assert differing(rows, enqueue, lambda got, wanted: wanted in got) == []
    assert not QueuedJob.objects.exists()
