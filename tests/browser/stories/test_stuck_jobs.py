"""Jobs that do not start, and one that does not end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue import operations
from django_jobqueue.models import QueuedJob
from django_jobqueue.stats import overview
from tests.admin.pages import page_of
from tests.browser.stories.on_call import OnCall
from tests.sample import jobs, orders
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.processes]

OVERVIEW = "/admin/jobqueue/"
ADD, PACK = jobs.add.name, orders.pack_order.name
Run = Callable[..., RunWorkers]


def pack(folder: Path, *numbers: int) -> None:
    """Enqueue orders to be packed, and wait until one is."""
    orders.pack_order.enqueue_many(
        {"order_id": n, "customer": "Harbour", "shelf": str(folder / "shelf")}
        for n in numbers
    )
    eventually(lambda: QueuedJob.objects.filter(status="running"), what="one to run")


def test_why_a_job_does_not_run_is_said_beside_it_and_leads_to_the_cause(
    me: OnCall, runworkers: Run, tmp_path: Path
) -> None:
    runworkers("--threads", "2", "--queues", "default").started()
    operations.pause([ADD], reason="wrong sums", by="bert")
    jobs.add.enqueue(1, 2)
    orders.charge_order.using(queue="night").enqueue(3, "Miller", "bank")
    pack(tmp_path, 1, 2)
    (holder,) = QueuedJob.objects.filter(status="running")

    me.opens(OVERVIEW)
    me.press("Queued")
    me.sees("bert paused its job type: wrong sums")
    me.press("no living worker serves its queue")
    me.sees("No living worker serves this queue.")
    assert me.screen.path == page_of("queue", "night")
    me.press("Queued")
    me.press("bert paused its job type: wrong sums")
    assert me.screen.path == page_of("jobtype", ADD)
    me.press("Queued")
    me.press("its job type is at its limit: 1 of 1 run")
    me.sees("1 queued job")
    rows = me.page.locator("#result_list tbody a").evaluate_all(
        "all => all.map(String)"
    )
    assert any(page_of("queuedjob", holder.pk) in row for row in rows)


def test_a_stuck_job_shows_where_it_is_and_is_cancelled(
    me: OnCall, runworkers: Run, tmp_path: Path
) -> None:
    runworkers("--threads", "2").started()
    pack(tmp_path, 4711)
    overview.forget()

    me.opens(OVERVIEW)
    me.press("1", within=".jq-card:has-text('Running')")
    me.press(PACK, exact=False, within="#result_list")
    me.press("Show stack")  # and nobody asks whether that is meant
    me.sees("Where it was", "in pack_order", "time.sleep")
    assert archived() == []
    me.press("Cancel")
    me.fill("Reason", "nobody fills the shelf")
    me.press("Cancel 1 job")
    me.sees("1 running job was asked to stop.")
    (job,) = eventually(archived, what="the job to stop")
    assert job.status == "cancelled"
    me.page.wait_for_url(f"**{page_of('archivedjob', job.pk)}")  # as it is refreshed
    me.sees("Cancelled. nobody fills the shelf")
