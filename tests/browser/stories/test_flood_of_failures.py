"""Every job of a type fails: what, whom it meets, stop it, mend it, do it again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from django_jobqueue.models import FailureGroup, JobType
from tests.admin.pages import page_of
from tests.browser.stories.on_call import OnCall
from tests.sample import jobs, orders
from tests.support.rows import archived, queued
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.processes]

OVERVIEW = "/admin/jobqueue/"
CHARGE = orders.charge_order.name
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
