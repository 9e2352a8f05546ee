"""A job type gets other limits; its day, its releases, and who did what to it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from django_jobqueue import operations
from django_jobqueue.models import AuditEntry, Failure, JobType, QueuedJob
from tests.admin import scene as rows
from tests.admin.pages import list_of, page_of
from tests.admin.test_job_types import happened
from tests.browser.stories.conftest import BY_CLICKS, OVERVIEW
from tests.browser.stories.on_call import OnCall
from tests.sample import orders
from tests.support.rows import archived
from tests.support.run_workers import RunWorkers
from tests.support.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.processes]

CHARGE, PACK = orders.charge_order.name, orders.pack_order.name
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
OLD, NEW = "2026.11.3", "2026.11.4"
Run = Callable[..., RunWorkers]


def charge(bank: Path, count: int) -> None:
    """Enqueue orders, and wait until they ended."""
    before = len(archived())
    orders.charge_order.enqueue_many(
        {"order_id": n, "customer": "Harbour", "bank": str(bank)} for n in range(count)
    )
    eventually(lambda: len(archived()) == before + count, what="all to end")


def test_limits_are_changed_where_they_are_shown_and_hold_at_once(
    me: OnCall, runworkers: Run, tmp_path: Path
) -> None:
    runworkers("--threads", "4").started()
    shelf = tmp_path / "shelf"

    def pack(*numbers: int) -> None:
        orders.pack_order.enqueue_many(
            {"order_id": n, "customer": "Harbour", "shelf": str(shelf)} for n in numbers
        )

    def running() -> int:
        return QueuedJob.objects.filter(status="running").count()

    pack(1, 2, 3)
    eventually(lambda: running() == 1, what="one to run")
    me.opens(OVERVIEW)
    me.enter("pack_order", into="[data-jq-jump]")
    me.fill("Concurrency", "2")
    me.fill("Timeout", "2m")
    me.press("Save")
    me.sees("was changed successfully")
    assert me.screen.path == page_of("jobtype", PACK)
    assert me.page.get_by_label("Timeout").input_value() == "2 m"
    eventually(lambda: running() == 2, what="two to run at once")
    row = JobType.objects.get(name=PACK)
    assert (row.concurrency_override, row.timeout_override) == (2, timedelta(minutes=2))

    shelf.touch()
    eventually(lambda: len(archived(status="succeeded")) == 3, what="all to be packed")
    shelf.unlink()
    me.fill("Timeout", "1s")
    me.press("Save")
    me.sees("was changed successfully")
    pack(4)
    eventually(lambda: Failure.objects.filter(end="timed_out"), what="the time limit")


@BY_CLICKS
def test_two_releases_are_compared(me: OnCall, runworkers: Run, bank: Path) -> None:
    bank.touch()
    old = runworkers("--threads", "2", "--release", OLD)
    old.started()
    charge(bank, 10)
    old.stop()
    bank.unlink()
    new = runworkers("--threads", "2", "--release", NEW)
    new.started()
    charge(bank, 10)
    new.stop()  # and write what they counted
    me.opens(OVERVIEW)
    me.press("Types")
    me.press("Compare releases")
    assert me.page.locator("select[name=old]").input_value() == OLD
    assert me.page.locator("select[name=new]").input_value() == NEW
    line = me.page.locator("tr", has_text=CHARGE).inner_text().split()
    assert line[1:3] == ["10", "0"]
    assert "fails more often" in " ".join(line)  # on a busy machine also "slower"
    me.sees("Fails in the newer release only")
    me.press("ConnectionError")
    me.sees(f"100 % of them carry release {NEW}.")


@BY_CLICKS
def test_the_day_of_a_type_is_seen_with_its_deploys_beside_the_day_before(
    me: OnCall, runworkers: Run, bank: Path
) -> None:
    rows.archived(CHARGE)  # so that the row of the type is there
    happened(30 * HOUR, CHARGE, succeeded=70, release=OLD)
    happened(5 * HOUR, CHARGE, succeeded=40, failed=3, release=OLD)
    bank.touch()
    workers = runworkers("--threads", "2", "--release", NEW)
    workers.started()
    charge(bank, 6)
    workers.stop()
    me.opens(OVERVIEW)
    me.enter("charge_order", into="[data-jq-jump]")
    today = "last 24 hours: 46 succeeded, 3 failed"
    me.page.get_by_role("img", name=today).first.wait_for()
    me.press("Compare with the day before")
    me.sees("all, the period before")
    me.unfold("What the vertical lines mean")
    me.page.locator("li", has_text=f"release {NEW} began").wait_for()
    me.press(NEW, within="#jq-curves")
    only = "last 24 hours: 6 succeeded, 0 failed"
    me.page.get_by_role("img", name=only).first.wait_for()


@BY_CLICKS
def test_who_did_what_yesterday_is_on_one_page(me: OnCall) -> None:
    id = rows.queued(CHARGE, data={"order_id": 4711})
    operations.pause([CHARGE], reason="the bank is closed", by="bert")
    operations.cancel([id], reason="the customer left", by="bert")
    operations.override(CHARGE, concurrency=3, by="carl")
    AuditEntry.objects.update(at=timezone.now() - DAY)
    operations.resume([CHARGE], by="dora")
    me.opens(OVERVIEW)
    me.press("Audit")
    me.press("Yesterday")
    me.sees("3 audit entries", "the customer left", "the bank is closed")
    assert "concurrency: – → 3" in me.text
    assert "dora" not in me.page.locator("#result_list").inner_text()
    me.press("bert")
    me.sees("2 audit entries")
    me.enter(str(id), into="#searchbar")
    me.sees("1 audit entry")
    assert list_of("auditentry") == me.screen.path
    me.press(str(id), exact=False, within="#result_list")
    me.sees("the customer left")
    assert me.screen.path == page_of("archivedjob", id)
