"""A customer asks to be forgotten: found in all tables, erased, and on record."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from django_jobqueue.models import ArchivedJob, Erasure, QueuedJob
from tests.admin import scene as rows
from tests.browser.stories.on_call import OnCall
from tests.operations.planted import tables_with
from tests.sample import jobs, orders
from tests.support.run_workers import RunWorkers

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

OVERVIEW = "/admin/jobqueue/"
MAIL = "anna@example.com"
Run = Callable[..., RunWorkers]


def test_a_customer_is_forgotten_and_the_rows_stay(me: OnCall, runworkers: Run) -> None:
    archived = [
        rows.archived(orders.charge_order.name, data={"order_id": n, "mail": MAIL})
        for n in range(3)
    ]
    other = rows.archived(orders.charge_order.name, data={"mail": f"jo{MAIL}"})
    waiting = rows.queued(jobs.add.name, data={"to": MAIL}, queue="closed")
    runworkers("--queues", "default")

    me.opens(OVERVIEW)
    me.enter(MAIL, into="[data-jq-jump]")
    me.press("Personal data: find this value in all tables")
    me.sees("Where the value is", "Erase the values")
    me.press("Erase the values", exact=False)
    me.fill("Reason", "ticket 88")
    me.fill("Number of rows", str(Erasure.objects.get().total))
    me.press("Erase the values", within="#content form")
    me.sees("Done")

    assert tables_with(MAIL) == ["jobqueue_archivedjob"]  # that of somebody else
    kept = ArchivedJob.objects.in_bulk([*archived, other, waiting])
    assert [kept[id].data["mail"] for id in archived] == ["[erased]"] * 3
    assert kept[other].data == {"mail": f"jo{MAIL}"}
    assert kept[waiting].status == "cancelled"
    assert not QueuedJob.objects.filter(pk=waiting).exists()
    me.opens("/admin/jobqueue/auditentry/")
    me.sees("start erase personal data")
    assert MAIL not in me.text
