"""Nothing is imported because a row says so, not even a task of an installed app."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module

import pytest
from django.core.exceptions import SuspiciousOperation

from django_jobqueue.backends import JobTask
from django_jobqueue.backends.compat import TaskResultDoesNotExist, task_backends
from django_jobqueue.domain.registry import registry
from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.sample import jobs, tasks
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

HIDDEN = "tests.sample.hidden"
DOUBLE = f"{HIDDEN}.double"


@pytest.fixture(autouse=True)
def _nobody_imported_it(transactional_db: None) -> Iterator[None]:
    yield
    sys.modules.pop(HIDDEN, None)
    registry.remove(DOUBLE)


def row(name: str, handler: str) -> QueuedJob:
    """A job of a type that is known by its row alone."""
    JobType.objects.get_or_create(name=name, defaults={"handler": handler})
    job = QueuedJob.objects.create(job_type_id=name, data={"number": 4})
    job.refresh_from_db()
    return job


ROWS = [
    ("os.system", "task os:system"),
    ("os.popen", "os:popen"),
    ("antigravity.fly", "task antigravity:fly"),
    (DOUBLE, f"task {HIDDEN}:double"),
    (f"{DOUBLE}_1", f"{HIDDEN}:double"),
    (f"{DOUBLE}_2", ""),
    (f"{HIDDEN}.no_task", f"task {HIDDEN}:no_task"),
    ("tests.samples.hidden.double", "task tests.samples.hidden:double"),
    ("tests.architecture.source.modules", "task tests.architecture.source:modules"),
]


def test_nothing_is_imported_for_a_row(worker: HandDriven) -> None:
    before = set(sys.modules)
    made = {name: row(name, handler).pk for name, handler in ROWS}
    worker.work()
    assert {job.job_type_id: job.pk for job in queued()} == made
    for name, id in made.items():
        with pytest.raises(SuspiciousOperation, match="no task that is known here"):
            task_backends["default"].get_result(str(id))
        assert registry.get(name) is None
    assert not {HIDDEN, "antigravity"} & (set(sys.modules) - before)


def test_a_worker_learns_of_a_task_imported_later(worker: HandDriven) -> None:
    job = row(DOUBLE, f"task {HIDDEN}:double")
    worker.work()
    assert len(queued()) == 1
    import_module(HIDDEN)
    worker.worker.dispatcher.policies_changed()
    worker.work()
    assert [job.result for job in archived()] == [8]
    (known,) = Worker.objects.values_list("job_types", flat=True)
    assert DOUBLE in known
    result = task_backends["default"].get_result(str(job.pk))
    assert isinstance(result.task, JobTask)
    assert result.task.module_path == DOUBLE
    assert result.kwargs == {"number": 4}


def test_a_job_that_is_no_task_has_no_result() -> None:
    job = jobs.add.enqueue(1)
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(str(job.id))
