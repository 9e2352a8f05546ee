"""What is imported because a row says so: tasks of installed apps, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
from django.core.exceptions import SuspiciousOperation

from django_jobqueue.backends import JobTask
from django_jobqueue.backends.compat import TaskResultDoesNotExist, task_backends
from django_jobqueue.models import JobType, QueuedJob, Worker
from django_jobqueue.registry import registry
from tests.conftest import HandDriven, RunWorkers, archived, eventually, queued
from tests.sample import jobs, tasks

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


def test_a_worker_imports_a_task_of_an_installed_app_when_it_sees_its_row(
    worker: HandDriven,
) -> None:
    assert HIDDEN not in sys.modules
    row(DOUBLE, f"task {HIDDEN}:double")
    worker.work()
    assert [job.result for job in archived()] == [8]
    (known,) = Worker.objects.values_list("job_types", flat=True)
    assert DOUBLE in known


@pytest.mark.parametrize(
    ("name", "handler"),
    [
        ("os.system", "task os:system"),
        ("os.system", "os:system"),
        ("antigravity.fly", "task antigravity:fly"),
        (DOUBLE, f"{HIDDEN}:double"),
        (DOUBLE, ""),
        (f"{HIDDEN}.other", f"task {HIDDEN}:double"),
        ("tests.samples.hidden.double", "task tests.samples.hidden:double"),
        ("tests.architecture.source.modules", "task tests.architecture.source:modules"),
    ],
)
def test_nothing_else_is_imported(worker: HandDriven, name: str, handler: str) -> None:
    before = set(sys.modules)
    job = row(name, handler)
    worker.work()
    assert [job.pk for job in queued()] == [job.pk]
    with pytest.raises(SuspiciousOperation):
        task_backends["default"].get_result(str(job.pk))
    assert not {HIDDEN, "antigravity"} & (set(sys.modules) - before)
    assert registry.get(name) is None


def test_what_is_imported_and_no_task_is_not_run(worker: HandDriven) -> None:
    name = f"{HIDDEN}.no_task"
    job = row(name, f"task {HIDDEN}:no_task")
    worker.work()
    assert [job.pk for job in queued()] == [job.pk]
    with pytest.raises(SuspiciousOperation):
        task_backends["default"].get_result(str(job.pk))


def test_a_job_that_is_no_task_has_no_result() -> None:
    job = jobs.add.enqueue(1)
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(str(job.id))


def test_a_result_whose_task_is_not_imported_yet_can_be_had() -> None:
    job = row(DOUBLE, f"task {HIDDEN}:double")
    result = task_backends["default"].get_result(str(job.pk))
    assert isinstance(result.task, JobTask)
    assert result.task.module_path == DOUBLE
    assert result.kwargs == {"number": 4}


@pytest.mark.processes
def test_a_quarantined_task_that_was_imported_late_runs(
    runworkers: Callable[..., RunWorkers],
) -> None:
    """Neither the keeper that looks for it nor the process that is to run it had its
    module at the start."""
    run = runworkers("--threads", "1")
    run.started()
    row(DOUBLE, f"task {HIDDEN}:double")
    QueuedJob.objects.update(alone=True)
    eventually(archived, within=60, what=run.output)
    assert [job.result for job in archived()] == [8]
