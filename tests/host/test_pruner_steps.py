"""A pass of the pruner has many steps; none depends on another one."""

from __future__ import annotations

from collections import Counter

import psycopg
import pytest

from django_jobqueue.contrib.alerts import alert_rows
from django_jobqueue.contrib.console import job_searches
from django_jobqueue.contrib.http import token_rows
from django_jobqueue.contrib.privacy import erasure_rows
from django_jobqueue.contrib.schedules import firing_rows
from django_jobqueue.exceptions import StoreUnavailable
from django_jobqueue.host.maintenance import pruner as pruner_module
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.host.maintenance.pruner import Pruner
from django_jobqueue.models import Bucket
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.store.rows import ago
from tests.workers.stopped_clock import StoppedClock

pytestmark = pytest.mark.django_db(transaction=True)

# What a pass does, in whichever order.
STEPS = (
    *("prune.rules", "prune.close_windows", "prune.tidy", "prune.drop_buckets"),
    *("prune.forget_groups", "worker_rows.forget", "host_rows.forget"),
    *("rollup_folding.fold", "rollup_folding.drop", "totals.fold"),
    *("totals.fold_queues", "totals.drop", "failure_rollup.drop", "audit.drop"),
    "operation_rows.drop",
    # Of rooms.
    *("erasure_rows.forget", "job_searches.drop", "alert_rows.drop", "token_rows.drop"),
    "firing_rows.prune_firings",
)
OF_ROOMS = {
    one.__name__.rpartition(".")[2]: one
    for one in (erasure_rows, job_searches, alert_rows, token_rows, firing_rows)
}


def test_a_step_of_the_pruner_that_fails_ends_no_other_one(
    own: OwnConnection,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each of them, in two passes; it is told of once."""
    clock, begun = StoppedClock(1e9), Counter[str]()
    monkeypatch.setattr(pruner_module, "time", clock)
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    for step in STEPS:
        module, name = step.split(".")

        def fail(*given: object, step: str = step, **more: object) -> None:
            begun[step] += 1
            raise psycopg.errors.RaiseException("not today")

        fail.__module__, fail.__name__ = f"of.{module}", name
        here = OF_ROOMS.get(module) or getattr(pruner_module, module)
        monkeypatch.setattr(here, name, fail)
    for _ in range(2):
        clock.now += 3_601
        while pruner.round() < 100:
            pass
    assert begun == dict.fromkeys(STEPS, 2)
    told = [
        record for record in caplog.records if ("failed, and continues") in record.msg
    ]
    assert len(told) == len(STEPS)
    assert not pruner.is_failing


def test_an_outage_ends_a_pass_of_the_pruner(
    own: OwnConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut_off(*given: object) -> None:
        raise StoreUnavailable("gone", retry_in=0.05)

    monkeypatch.setattr(pruner_module.prune, "close_windows", cut_off)
    monkeypatch.setattr(pruner_module.rollup_folding, "fold", pytest.fail)
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while not pruner.is_failing:
        assert pruner.round() < 100


def test_full_buckets_are_dropped_in_each_pass(own: OwnConnection) -> None:
    """Not hourly: a claim passes all that are full, under the lock of their limit."""
    Bucket.objects.create(limit_key="full", full_at=ago(120))
    pruner = Pruner(own, DeadlineWatch(own, WorkerConfig()))
    while pruner.tick() < 100:
        pass
    assert not Bucket.objects.exists()
