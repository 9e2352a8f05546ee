"""The shop at work once, from orders to a report."""

from __future__ import annotations

import time
from typing import Final

from django.conf import settings

from testproject.demo.browser import Browser
from testproject.demo.customers import Customers
from testproject.demo.prepare import prepare
from testproject.demo.processes import FILES, Process, pause, running
from testproject.demo.web import web_server
from testproject.shop.report import checks, report
from testproject.shop.run import Run

ORDERS: Final = 12
ROUND: Final = 120.0  # seconds for one round of the workers
RETRYING: Final = (
    20.0  # seconds in which a job must have succeeded that failed at first
)


def run() -> int:
    """Do everything once; returns 0 if all of it is as it should be."""
    this_run = Run.starting_now()
    prepare()
    with web_server(settings.SHOP_URL) as web:
        customers = Customers(Browser(settings.SHOP_URL))
        placed = [customers.order(cards_may_fail=False) for _ in range(ORDERS)]
        customers.import_supplies()
        print(f"{ORDERS} orders are placed; the workers are at work.\n", flush=True)
        _work(this_run, web)
        customers.refresh_prices()
        _work(this_run, web)
    found = checks(this_run, placed)
    print(report(this_run, found))
    if all(check.holds for check in found):
        return 0
    print(f"The logs are in {FILES}.")
    return 1


def _work(this_run: Run, web: Process) -> None:
    """Drain until nothing waits for its next attempt, or waits for too long."""
    _drain()
    deadline = time.monotonic() + RETRYING
    while (wait := this_run.next_job_in()) is not None:
        if time.monotonic() + wait > deadline:
            return
        pause(max(wait, 0.1), web)
        _drain()


def _drain() -> None:
    with running("workers", "runworkers", "--drain") as workers:
        workers.wait(within=ROUND)
