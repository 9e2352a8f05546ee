"""Whether a worker lives is stated in many statements: they agree on each state, and
each lease."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from django.test import RequestFactory
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.admin.jobs import release
from django_jobqueue.admin.workers.fleet import fleet
from django_jobqueue.admin.workers.worker_list import WorkerStateFilter
from django_jobqueue.domain.states import WorkerState
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.store import worker_rows
from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.reading import stats
from django_jobqueue.store.reading.claimers import has_lapsed, is_alive
from tests.store.rows import ago, make, register
from tests.support.undone import check_each, undone

pytestmark = pytest.mark.django_db

FILTER: Any = None  # it is of no page
LEASES = {"is renewed": -60.0, "has lapsed": 1.0}  # seconds ago


def test_a_worker_lives_wherever_it_is_asked_for() -> None:
    db = DjangoDatabase()

    @undone()
    def check(state: WorkerState, lease: str) -> None:
        id = register(db)
        until = ago(LEASES[lease])
        Worker.objects.filter(pk=id).update(state=state, lease_until=until)
        job = make(status="running", worker_id=id, started_at=ago(5))
        should = state in (WorkerState.RUNNING, WorkerState.DRAINING)
        lives, lapsed = (
            should and lease == "is renewed",
            should and lease != "is renewed",
        )
        has_deadlines = state in (WorkerState.ENDPOINT, WorkerState.MOVING)

        (row,) = stats.workers(db) or [None]
        if row is not None:  # those that ended, and endpoints, are left out in time
            assert (is_alive(row), has_lapsed(row)) == (lives, lapsed)
        assert bool(fleet(RequestFactory().get("/")).living) is lives
        worker = Worker.objects.get(pk=id)
        assert worker.keeps_its_jobs(timezone.now()) is (lives or has_deadlines)
        shown = WorkerStateFilter.narrowed(FILTER, Worker.objects.all(), "lapsed")
        assert shown.exists() is lapsed
        assert worker_rows.strays(db) == ([] if should or has_deadlines else [id])
        lost = release._lost(QueuedJob.objects.all())  # private: what its page shows
        taken = operations.release([job])
        assert [one.pk for one in lost] == [one.id for one in taken]
        moves = state == WorkerState.MOVING and lease == "is renewed"
        assert bool(taken) is not (lives or moves)

    check_each(check, product(WorkerState, LEASES), least=10)
