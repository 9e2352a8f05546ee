"""The bar of a job in a browser, while a real worker runs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction

from django_jobqueue.models import ArchivedJob, QueuedJob
from tests.admin.pages import list_of, page_of
from tests.admin.scene import ADD
from tests.browser.conftest import Screen, See
from tests.progress.rows import running, told
from tests.sample import jobs
from tests.support.run_workers import RunWorkers

pytestmark = [
    pytest.mark.browser,
    pytest.mark.urls("tests.browser.watched"),
    pytest.mark.django_db(transaction=True),
]

Run = Callable[..., RunWorkers]
TOLD = """
window.told = [];
for (const name of ["jobqueue:progress", "jobqueue:done"]) {
  document.addEventListener(name, (event) => told.push([name, event.detail.status]));
}
"""
LINES = "document.querySelector('.jq-lines')"


@pytest.fixture
def visitor(see: See) -> Screen:
    """The browser of one who never logged in."""
    screen = see()
    screen.page.context.clear_cookies()
    screen.hastens()
    return screen


def watch(screen: Screen, id: UUID, query: str = "") -> Any:
    """Look at the page of this job, and note what the bar sends."""
    screen.page.add_init_script(TOLD)
    return screen.open(f"/watch/{id}/{query}")


def bar(screen: Screen) -> float | None:
    """How full the bar is; None while it only moves to and fro."""
    script = "one => one.hasAttribute('value') ? one.value : null"
    value: float | None = screen.page.locator("progress").evaluate(script)
    return value


def status(screen: Screen) -> Any:
    """The word for what the job is."""
    return screen.page.locator("[data-job-status]")


def step(folder: Path, number: int) -> None:
    """Let the job go on."""
    (folder / str(number)).touch()


def over(id: UUID, status: str = "succeeded") -> None:
    """Archive a running job, as workers do."""
    with transaction.atomic():
        QueuedJob.objects.filter(pk=id).delete()
        ArchivedJob.objects.create(id=id, job_type_id=ADD, status=status)


def has_ended(screen: Screen, word: str = "succeeded") -> None:
    """Wait until the bar knows."""
    screen.page.locator(f'job-progress[data-status="{word}"]').wait_for()


@pytest.mark.processes
def test_the_bar_moves_while_the_job_runs_and_ends_with_it(
    visitor: Screen, runworkers: Run, tmp_path: Path
) -> None:
    job = jobs.step_by_step.enqueue(str(tmp_path), 4)
    watch(visitor, job.id)
    assert (status(visitor).inner_text(), bar(visitor)) == ("waiting", 0)
    refresh = visitor.page.get_by_role("link", name="Refresh")
    assert not refresh.is_visible()
    runworkers("--threads", "1").started()
    visitor.shows("0 of 4 (0 %)")
    assert status(visitor).inner_text() == "running"
    step(tmp_path, 1)
    visitor.shows("1 of 4 (25 %)")
    visitor.shows("took step 1")
    assert bar(visitor) == 0.25
    for number in (2, 3, 4):
        step(tmp_path, number)
    has_ended(visitor)
    assert status(visitor).inner_text() == "done"
    visitor.shows("4 of 4 (100 %)")
    assert bar(visitor) == 1
    told = visitor.page.evaluate("told")
    assert ["jobqueue:progress", "running"] in told
    assert told[-1] == ["jobqueue:done", "succeeded"]
    assert told.count(told[-1]) == 1
    assert not visitor.page.context.cookies()


def test_at_the_end_the_page_goes_where_it_is_told(visitor: Screen) -> None:
    id = running()
    watch(visitor, id, "?url=/ready/")
    over(id)
    visitor.page.wait_for_url("**/ready/")
    visitor.shows("All are imported.")


def test_it_stays_at_another_end_and_if_a_listener_says_so_or_it_is_told_a_script(
    visitor: Screen,
) -> None:
    id = running()
    watch(visitor, id, "?url=/ready/")
    over(id, "failed")
    has_ended(visitor, "failed")
    assert visitor.path == f"/watch/{id}/"
    assert status(visitor).inner_text() == "failed"
    id = running()
    visitor.open(f"/watch/{id}/?url=/ready/")
    visitor.page.evaluate(
        "addEventListener('jobqueue:done', event => event.preventDefault())"
    )
    over(id)
    has_ended(visitor)
    visitor.page.wait_for_load_state("networkidle")
    assert visitor.path == f"/watch/{id}/"
    id = running()
    visitor.open(f"/watch/{id}/?url=javascript:document.body.remove()")
    over(id)
    has_ended(visitor)
    assert visitor.page.locator("body h1").is_visible()


def test_at_the_end_the_page_is_loaded_again_once(visitor: Screen) -> None:
    id = running()
    loads: list[str] = []
    visitor.page.on("load", lambda page: loads.append(page.url))
    watch(visitor, id, "?reload=1")
    over(id, "cancelled")
    visitor.page.locator("job-progress:not([data-url])").wait_for()
    assert status(visitor).inner_text() == "cancelled"
    visitor.page.wait_for_load_state("networkidle")
    assert len(loads) == 2


def test_without_scripts_there_is_how_far_it_was_and_a_link(see: See) -> None:
    id = running()
    row = told(id, done=1, total=4)
    screen = see(java_script_enabled=False)
    screen.open(f"/watch/{id}/?reload=1")
    assert "running 1 of 4 (25 %)" in screen.text
    row.done = 3
    row.save()
    screen.press("Refresh")
    screen.shows("3 of 4 (75 %)")
    assert screen.page.url.endswith("?reload=1")


def test_a_page_that_is_too_old_stops_and_offers_to_be_loaded_again(
    visitor: Screen, settings: Any
) -> None:
    id = running()
    told(id, done=1, total=4)
    watch(visitor, id)
    settings.SECRET_KEY = "rotated"
    refresh = visitor.page.get_by_role("link", name="Refresh")
    refresh.wait_for()
    assert visitor.complaints.pop().startswith("Failed to load resource")
    assert visitor.complaints == []
    refresh.click()
    refresh.wait_for(state="hidden")
    over(id)
    has_ended(visitor)


def test_a_bar_that_comes_later_is_kept_up_to_date_too(visitor: Screen) -> None:
    first, second = running(), running()
    watch(visitor, first)
    visitor.page.evaluate(
        "async address => document.body.append(new DOMParser().parseFromString("
        "await (await fetch(address)).text(), 'text/html')"
        ".querySelector('job-progress'))",
        f"/watch/{second}/",
    )
    over(second)
    has_ended(visitor)
    assert visitor.page.locator('job-progress[data-status="running"]').count() == 1


def test_a_long_note_makes_no_page_wider(screen: Screen) -> None:
    id = running()
    told(id, done=1, total=4, note="x" * 500)
    page = screen.open(f"/watch/{id}/")
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_page_of_a_running_job_in_the_admin_keeps_up(screen: Screen) -> None:
    screen.hastens()
    id = running()
    row = told(id, done=1, total=4, lines=[[1_795_000_000, "info", "a line"]])
    screen.open(page_of("queuedjob", id))
    screen.refreshes()
    screen.page.get_by_text("1 line", exact=True).click()
    assert not screen.page.get_by_text("a line").is_visible()
    row.done = 3
    row.lines.append([1_795_000_001, "warning", "another line"])
    row.save()
    screen.shows("3 of 4 (75 %)")
    assert screen.page.locator("progress").get_attribute("value") == "75"
    assert not screen.page.get_by_text("another line").is_visible()  # as it was folded
    screen.open(list_of("queuedjob"))
    assert screen.page.locator("progress").get_attribute("value") == "75"


def test_lines_of_a_running_job_are_read_at_their_end(screen: Screen) -> None:
    screen.hastens()
    id = running()
    lines = [[1_795_000_000 + n, "info", f"line {n}."] for n in range(150)]
    row = told(id, lines=lines)
    screen.open(page_of("queuedjob", id))
    assert screen.page.get_by_role("list", name="Lines").count() == 1

    def box(script: str) -> Any:  # in one step: a refresh puts another in its place
        return screen.page.evaluate(f"(box => {script})({LINES})")

    rest = "box.scrollHeight - box.clientHeight - box.scrollTop"
    assert box(rest) < 8
    screen.refreshes()
    row.lines += [[1_795_000_200, "info", "the newest"]]
    row.save()
    screen.shows("the newest")
    assert box(rest) < 8
    box("{ box.scrollTop = 40; }")
    row.lines += [[1_795_000_300, "info", "one more"]]
    row.save()
    screen.page.get_by_text("one more").wait_for(state="attached")
    assert box("box.scrollTop") == 40
