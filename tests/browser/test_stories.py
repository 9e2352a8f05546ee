"""What operators do, in a browser, with real workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry

from django_jobqueue.models import FailureGroup, JobType, QueuedJob
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import Screen, See
from tests.sample import jobs
from tests.sample.jobs import notes
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.processes]

OVERVIEW = "/admin/jobqueue/"
WRITE = "tests.sample.write"
Run = Callable[..., RunWorkers]


def test_a_flood_of_failures_is_seen_understood_replayed_resolved_and_regresses(
    screen: Screen, runworkers: Run, tmp_path: Path
) -> None:
    runworkers("--threads", "4").started()
    folder = tmp_path / "not-mounted"
    calls = [{"journal": str(folder / "journal"), "word": str(n)} for n in range(30)]
    jobs.write.using(max_attempts=1).enqueue_many(calls)
    eventually(lambda: len(archived(status="failed")) == 30, what="the flood")

    screen.open(OVERVIEW)
    screen.comes("A new failure: FileNotFoundError")
    screen.page.get_by_text("A new failure:").click()
    screen.shows("No such file or directory")
    screen.shows("tests.sample.jobs:append")
    screen.shows("descriptor = os.open(path")  # the line of code that failed

    folder.mkdir()  # somebody mounts the disk
    screen.press("Replay failed jobs")
    screen.shows("Replay 30 jobs?")
    screen.page.get_by_label("Reason").fill("the disk is mounted again")
    screen.press("Replay 30 jobs")
    screen.comes("30 of 30")
    eventually(lambda: len(archived(status="succeeded", job_type=WRITE)) == 30)
    assert len(archived(status="failed")) == 30

    group = page_of("failuregroup", FailureGroup.objects.get().pk)
    screen.open(group)
    screen.press("Resolve")
    screen.press("Resolve")
    screen.shows("resolved")
    assert FailureGroup.objects.get().state == "resolved"
    assert LogEntry.objects.filter(user__username="anna").count() >= 2

    jobs.write.enqueue(str(tmp_path / "gone" / "journal"))
    eventually(lambda: FailureGroup.objects.get().regressed_at, what="the regression")
    screen.open(group)
    screen.shows("regressed")
    screen.open(OVERVIEW)
    screen.comes("A resolved failure is back: FileNotFoundError")


def test_a_running_job_is_cancelled(
    screen: Screen, runworkers: Run, journal: str
) -> None:
    runworkers("--threads", "2").started()
    id = jobs.awrite.enqueue(journal, "long", 600.0).id
    eventually(lambda: notes(journal), what="the job to start")

    screen.open(list_of("queuedjob"))
    screen.shows("running on")
    screen.open(page_of("queuedjob", id))
    screen.press("Cancel")
    screen.shows("its handler is asked to stop")
    assert queued()[0].cancel_requested_at is None
    screen.page.get_by_label("Reason").fill("wrong customer")
    screen.press("Cancel 1 job")
    screen.shows("1 running job was asked to stop.")

    eventually(archived, what="the job to stop")
    screen.open(page_of("queuedjob", id))
    screen.shows("This job has finished; it is in the archive.")
    assert screen.path == page_of("archivedjob", id)
    assert "anna Cancelled. wrong customer" in screen.text
    assert notes(journal) == [["start", "long"]]


def test_a_job_type_is_paused_and_resumed(
    screen: Screen, runworkers: Run, journal: str
) -> None:
    runworkers("--threads", "2").started()
    screen.open(page_of("jobtype", "tests.sample.write"))
    screen.press("Pause")
    screen.page.get_by_label("Reason").fill("the carrier is down")
    screen.press("Pause")
    screen.shows("Paused: tests.sample.write.")
    screen.open(page_of("jobtype", "tests.sample.write"))
    screen.shows("the carrier is down")

    waiting = jobs.write.enqueue(journal, "waits")
    jobs.add.enqueue(1, 2)
    eventually(archived, what="another type's job to run")
    assert [job.pk for job in queued()] == [waiting.id]
    screen.open(page_of("queuedjob", waiting.id))
    screen.shows("job type paused")

    screen.open(page_of("jobtype", "tests.sample.write"))
    screen.press("Resume")
    screen.shows("was paused by anna: the carrier is down")
    screen.press("Resume")
    screen.shows("Resumed: tests.sample.write.")
    eventually(lambda: notes(journal) == [["start", "waits"], ["end", "waits"]])


def test_a_viewer_sees_it_all_and_can_do_nothing(
    see: See, runworkers: Run, journal: str
) -> None:
    runworkers("--threads", "2").started()
    running = jobs.awrite.enqueue(journal, "long", 600.0).id
    failed = jobs.fail.enqueue("no stock").id
    eventually(lambda: notes(journal) and archived(), what="jobs to run and to fail")

    screen = see("Job viewer")
    for address, text in (
        (list_of("queuedjob"), "running on"),
        (page_of("queuedjob", running), "running on"),
        (page_of("archivedjob", failed), "no stock"),
        (list_of("failuregroup"), "ValueError"),
        (page_of("jobtype", "tests.sample.write"), "max attempts"),
        (list_of("worker"), "running"),
    ):
        screen.open(address)
        screen.shows(text)
        forms = screen.page.locator("#content form[method=post]")
        assert forms.locator("input[type=submit], button:not(.jq-copy)").count() == 0
        for verb in ("Cancel", "Pause", "Replay", "Drain", "Stop", "Resolve"):
            found = screen.page.get_by_role("link", name=verb, exact=True)
            assert found.count() == 0
    assert not JobType.objects.filter(paused=True).exists()
    assert QueuedJob.objects.get().cancel_requested_at is None
