"""A flood of failures, jobs that do not start or end, a customer to be forgotten."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue import operations
from django_jobqueue.contrib.privacy.models import Erasure
from django_jobqueue.models import ArchivedJob, FailureGroup, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.pages import page_of
from tests.browser.stories.conftest import BY_CLICKS, OVERVIEW
from tests.browser.stories.on_call import OnCall
from tests.contrib.privacy.planted import tables_with
from tests.sample import jobs, orders
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.processes]

ADD, CHARGE, PACK = jobs.add.name, orders.charge_order.name, orders.pack_order.name
MAIL = "anna@example.com"
Run = Callable[..., RunWorkers]


def charge(bank: Path, *numbers: int) -> None:
    """Enqueue orders; two of three are Harbour's."""
    customers = ("Harbour", "Harbour", "Miller")
    orders.charge_order.enqueue_many(
        {"order_id": n, "customer": customers[n % 3], "bank": str(bank)}
        for n in numbers
    )


def test_a_flood_of_failures_is_understood_stopped_mended_and_resolved(
    me: OnCall, runworkers: Run, bank: Path
) -> None:
    runworkers("--threads", "4").started()
    charge(bank, *range(30))
    eventually(lambda: len(archived(status="failed")) == 30, what="the flood")

    me.opens(OVERVIEW)
    me.waits_for("A new failure: ConnectionError in tests.sample.orders:charge_order")
    assert "first seen" in me.page.locator("li", has_text="A new failure").inner_text()
    me.press("A new failure", exact=False)
    me.sees("the bank refuses order", "since 20")
    me.sees("raise ConnectionError(")  # the line of code that failed
    affected = " ".join(me.page.locator(".jq-affected").inner_text().split())
    assert "customer Harbour × 20, Miller × 10" in affected

    me.press(f"Pause {CHARGE}")
    me.fill("Reason", "the bank refuses everything")
    me.press("Pause")
    me.sees(f"Paused: {CHARGE}.", "paused: the bank refuses everything")
    group = FailureGroup.objects.get()
    assert me.screen.path == page_of("failuregroup", group.pk)
    charge(bank, 100)
    jobs.add.enqueue(1, 2)
    eventually(lambda: archived(status="succeeded"), what="another type's job to run")
    assert [job.job_type_id for job in queued()] == [CHARGE]

    bank.touch()  # somebody mends it
    me.press("Resolve and replay failed jobs")
    me.sees("Replay 30 jobs?", "Paused, so that the new jobs will wait", " of Miller")
    me.check(f"Resume {CHARGE}")
    me.press("Replay 30 jobs")
    me.waits_for("succeeded 30")
    assert "30 of 30 (100 %)" in me.text
    done = {"status": "succeeded", "job_type": CHARGE}
    eventually(lambda: len(archived(**done)) == 31, what="all to be charged")
    assert len(archived(status="failed")) == 30
    assert not JobType.objects.get(name=CHARGE).paused
    assert FailureGroup.objects.get().state == "resolved"

    bank.unlink()
    charge(bank, 200)
    eventually(lambda: FailureGroup.objects.get().regressed_at, what="the regression")
    me.opens(OVERVIEW)
    me.waits_for("A resolved failure is back: ConnectionError")


@BY_CLICKS
def test_a_failed_job_is_replayed_with_other_data(
    me: OnCall, runworkers: Run, bank: Path
) -> None:
    runworkers("--threads", "2").started()
    bank.touch()
    charge(bank.with_name("bnak"), 4711)
    (failed,) = eventually(lambda: archived(status="failed"), what="the job to fail")
    me.opens(OVERVIEW)
    me.waits_for("A new failure: ConnectionError")
    me.press("A new failure", exact=False)
    me.press(f"{str(failed.pk)[:8]}…", exact=False)
    me.press("Edit and replay")
    text = me.page.get_by_label("Data").input_value()
    me.fill("Data", text.replace("bnak", "bank"))
    me.press("See what changes")
    me.sees("What changes", "bnak")
    me.press("Replay", within="#content-main")
    me.sees("Replay of")
    (done,) = eventually(lambda: archived(status="succeeded"), what="the replay")
    assert done.replay_of == failed.pk
    assert done.data["bank"] == str(bank)
    assert failed.data["bank"] != str(bank)


def pack(folder: Path, *numbers: int) -> None:
    """Enqueue orders to be packed, and wait until one is."""
    orders.pack_order.enqueue_many(
        {"order_id": n, "customer": "Harbour", "shelf": str(folder / "shelf")}
        for n in numbers
    )
    eventually(lambda: QueuedJob.objects.filter(status="running"), what="one to run")


@BY_CLICKS
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
    links = me.page.locator("#result_list tbody a").evaluate_all(
        "all => all.map(String)"
    )
    assert any(page_of("queuedjob", holder.pk) in link for link in links)


def test_a_stuck_job_shows_where_it_is_and_is_cancelled(
    me: OnCall, runworkers: Run, tmp_path: Path
) -> None:
    runworkers("--threads", "2").started()
    pack(tmp_path, 4711)
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
    me.sees("anna Cancelled. nobody fills the shelf")


def test_a_customer_is_forgotten_and_the_rows_stay(me: OnCall, runworkers: Run) -> None:
    gone = [
        rows.archived(orders.charge_order.name, data={"order_id": n, "mail": MAIL})
        for n in range(3)
    ]
    other = rows.archived(orders.charge_order.name, data={"mail": f"jo{MAIL}"})
    waiting = rows.queued(jobs.add.name, data={"to": MAIL}, queue="closed")
    runworkers("--queues", "default")
    me.opens(OVERVIEW)
    me.enter(MAIL, into="[data-jq-jump]")
    me.press("Personal data: find this value in all tables")
    me.sees("Where the value occurs", "Erase the values")
    me.press("Erase the values", exact=False)
    me.fill("Reason", "ticket 88")
    me.fill("Number of rows", str(Erasure.objects.get().total))
    me.press("Erase the values", within="#content form")
    me.sees("Done")
    assert tables_with(MAIL) == ["jobqueue_archivedjob"]  # that of somebody else
    kept = ArchivedJob.objects.in_bulk([*gone, other, waiting])
    assert [kept[id].data["mail"] for id in gone] == ["[erased]"] * 3
    assert kept[other].data == {"mail": f"jo{MAIL}"}
    assert kept[waiting].status == "cancelled"
    assert not QueuedJob.objects.filter(pk=waiting).exists()
    me.opens("/admin/jobqueue/auditentry/")
    me.sees("start erase personal data")
    assert MAIL not in me.text
