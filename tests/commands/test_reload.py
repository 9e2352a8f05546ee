"""``runworkers --reload``: the code changes, and the next job runs what it is now."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import JobType, QueuedJob, Worker
from tests.crashes.test_kills import is_gone
from tests.support.commands import ROOT
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

Start = Callable[..., RunWorkers]

SETTINGS = """
from tests.support.small_settings import *
INSTALLED_APPS = [*INSTALLED_APPS, "changing"]
JOBQUEUE = {"GRACE": 0.5}
"""
HANDLERS = """
import time
from django_jobqueue import job

@job(name="changing.version")
def version() -> int:
    return {version}

@job(name="changing.stay")
def stay(journal: str) -> None:
    with open(journal, "a") as file:
        file.write("started\\n")
    while True:
        time.sleep(0.01)
"""


class Project:
    """A project whose handlers change, and the workers that reload it."""

    def __init__(self, folder: Path, start: Start) -> None:
        (folder / "changing").mkdir()
        (folder / "changing" / "__init__.py").touch()
        (folder / "changing_settings.py").write_text(SETTINGS)
        self.handlers = folder / "changing" / "jobs.py"
        self.write(HANDLERS.format(version=1))
        self.run = start(
            "--reload",
            DJANGO_SETTINGS_MODULE="changing_settings",
            PYTHONPATH=f"{ROOT}:{folder}",
        )
        self.wait_for_workers(1)

    def write(self, code: str) -> None:
        draft = self.handlers.with_suffix(".draft")
        draft.write_text(code)
        draft.rename(self.handlers)

    def wait_for_workers(self, count: int) -> None:
        """Until so many have been started, and all but the last have been told to
        stop."""
        eventually(
            lambda: (
                Worker.objects.count() == count
                and Worker.objects.filter(state="running").count() == 1
            ),
            what=lambda: f"worker {count}:\n{self.run.output}",
        )

    def version(self) -> int:
        """The version of the handlers that a job finds now."""
        eventually(lambda: JobType.objects.filter(name="changing.version"))
        job = QueuedJob.objects.create(job_type_id="changing.version")
        eventually(lambda: archived(id=job.id), what=self.run.output)
        return int(archived(id=job.id)[0].result)


@pytest.fixture
def project(tmp_path: Path, runworkers: Start) -> Project:
    return Project(tmp_path, runworkers)


@pytest.mark.processes
def test_the_next_job_runs_the_code_as_it_is_now(
    project: Project, journal: str
) -> None:
    """A job that runs for longer than the grace is released."""
    assert project.version() == 1
    made = QueuedJob.objects.create(
        job_type_id="changing.stay", data={"journal": journal}
    )
    eventually(lambda: Path(journal).exists())
    project.write("def version(: it is not finished")
    eventually(lambda: "waiting for a change of the code" in project.run.output)
    assert "SyntaxError" in project.run.output
    eventually(lambda: not Worker.objects.filter(state="running"))

    project.write(HANDLERS.format(version=2))
    project.wait_for_workers(2)
    assert project.version() == 2
    eventually(lambda: Path(journal).read_text() == "started\n" * 2)
    again = QueuedJob.objects.get(id=made.id)
    assert (again.attempts, again.crashes) == (1, 0)

    project.run.signal(signal.SIGINT)
    assert project.run.wait() == 0, project.run.output
    assert not Worker.objects.filter(state="running")


@pytest.mark.slow("starts Python twice more")
@pytest.mark.processes
def test_workers_end_with_the_process_that_watches(project: Project) -> None:
    worker = Worker.objects.get(state="running")
    project.run.process.kill()
    eventually(lambda: is_gone(worker.pid))
    eventually(lambda: Worker.objects.get(pk=worker.pk).state == "stopped")
