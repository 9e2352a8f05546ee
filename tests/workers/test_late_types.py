"""Job types that are declared after a worker has started: nobody keeps a list."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from django_jobqueue import job, testing
from django_jobqueue.domain.registry import registry
from django_jobqueue.enqueueing.handler import Handler
from django_jobqueue.host.maintenance.deadline_watch import DeadlineWatch
from django_jobqueue.models import QueuedJob, Worker
from django_jobqueue.processes.worker_config import WorkerConfig
from django_jobqueue.store.connection import OwnConnection
from tests.host.test_loop import Counter
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

pytestmark = pytest.mark.django_db(transaction=True)

MODULE = "tests.sample.made_late"
NAME = "tests.made_late"


@pytest.fixture
def late() -> Iterator[Callable[[], Handler]]:
    """Import a module with a handler, later."""

    def make() -> Handler:
        module = sys.modules[MODULE] = ModuleType(MODULE)
        exec("def made_late() -> str:\n    return 'ran'", vars(module))
        return job(name=NAME)(module.made_late)

    yield make
    sys.modules.pop(MODULE, None)
    registry.remove(NAME)


def test_a_worker_runs_a_type_that_is_declared_after_its_start_and_says_so(
    worker: HandDriven, late: Callable[[], Handler]
) -> None:
    worker.work()
    late().enqueue()
    worker.work()
    assert [done.result for done in archived()] == ["ran"]
    worker.dispatcher.policies_changed()
    worker.claim()
    assert NAME in Worker.objects.get().job_types


def test_what_could_not_be_written_in_its_row_is_written_later(
    worker: HandDriven, late: Callable[[], Handler], own: OwnConnection
) -> None:
    worker.claim()
    late()
    own.run("ALTER TABLE jobqueue_worker RENAME job_types TO away")
    worker.dispatcher.policies_changed()
    worker.dispatcher.round()
    own.run("ALTER TABLE jobqueue_worker RENAME away TO job_types")
    worker.dispatcher.policies_changed()
    worker.dispatcher.round()
    assert NAME in Worker.objects.get().job_types


def test_a_type_whose_module_is_still_being_imported_is_left_to_the_next_look(
    worker: HandDriven, late: Callable[[], Handler]
) -> None:
    """Its handler would miss what the module defines below it."""
    worker.work()
    late().enqueue()
    spec = type("Spec", (), {"_initializing": True})
    sys.modules[MODULE].__spec__ = spec()
    worker.work()
    assert queued()
    # private: what Python's import sets
    spec._initializing = False
    worker.work()
    assert [done.result for done in archived()] == ["ran"]


def test_maintenance_sees_a_quarantined_job_of_a_type_declared_after_its_start(
    own: OwnConnection, late: Callable[[], Handler]
) -> None:
    deadlines = DeadlineWatch(own, WorkerConfig())
    deadlines.next_for(Counter())
    late().enqueue()
    QueuedJob.objects.update(quarantined=True)
    assert deadlines.next_for(Counter(), reread=True).quarantined == pytest.approx(
        0, abs=1
    )


def test_a_drain_of_a_test_runs_what_a_handler_of_it_declared(
    late: Callable[[], Handler], monkeypatch: pytest.MonkeyPatch
) -> None:
    def declare_and_enqueue(a: int, b: int = 0) -> int:
        late().enqueue()
        return a

    monkeypatch.setitem(
        registry._by_name,  # private: to declare another function of this name
        jobs.add.name,
        jobs.add.declaration._replace(function=declare_and_enqueue),
    )
    jobs.add.enqueue(1)
    assert [ran.job.result for ran in testing.drain()] == [1, "ran"]
