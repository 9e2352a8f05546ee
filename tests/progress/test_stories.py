"""What handlers tell a real worker, as pages show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from django_jobqueue.progress import progress_of
from tests.admin.pages import get, page_of
from tests.sample import jobs
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

PROMPT = {"workers.reporter.WRITE_EVERY": 0.1}


@pytest.fixture
def admin(transactional_db: None) -> Client:
    """The browser of a superuser."""
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("anna", "", "x"))
    return client


def test_attempts_that_failed_and_succeeded_are_told_apart(
    worker: HandDriven, admin: Client
) -> None:
    id = jobs.tell.enqueue(3, retry=True, secret="hunter22").id
    worker.work()
    (job,) = archived()
    assert (job.status, job.attempts) == ("succeeded", 2)
    found = progress_of(id)
    assert (found.text, found.note, found.attempt) == ("3 of 3 (100 %)", "done", 2)

    page = get(admin, page_of("archivedjob", id))
    assert [bar["value"] for bar in page.all("progress")] == ["100", "100"]
    assert page.text.count("info line 2") == 2
    assert page.text.index("succeeded") < page.text.index("info line 2")
    assert page.text.index("not yet") < page.text.rindex("info line 2")
    assert "hunter22" not in page.html
    assert "with ••••" in page.text


@pytest.mark.processes
def test_a_job_is_watched_from_its_enqueueing_to_its_end(
    runworkers: Callable[..., RunWorkers], admin: Client, tmp_path: Path
) -> None:
    job = jobs.step_by_step.enqueue(str(tmp_path), 4)
    assert progress_of(job.id).status == "queued"
    runworkers("--threads", "1", constants=PROMPT).started()
    eventually(lambda: progress_of(job.id).text == "0 of 4 (0 %)", what="the start")

    (tmp_path / "1").touch()
    eventually(lambda: progress_of(job.id).done == 1, what="the first step")
    found = progress_of(job.id)
    assert (found.status, found.note) == ("running", "took step 1")
    page = get(admin, page_of("queuedjob", job.id))
    assert "1 of 4 (25 %) · took step 1 · about" in page.text
    assert "waits for step 2" in page.text

    (tmp_path / "2").mkdir()
    eventually(lambda: progress_of(job.id).is_over, what="the end")
    found = progress_of(job.id)
    assert (found.status, found.text) == ("failed", "1 of 4 (25 %)")
