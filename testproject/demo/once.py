"""The shop at work once, from orders to a report."""

from __future__ import annotations

import time
from typing import Final

from django.conf import settings

from testproject.demo.browser import Browser
from testproject.demo.customers import Customers
from testproject.demo.prepare import prepare
from testproject.demo.processes import Process, pause, running
from testproject.demo.web import web_server
from testproject.shop.report import checks, table
from testproject.shop.run import Run, figures

ORDERS: Final = 12
LIMIT: Final = 180.0  # seconds for all of the work
ROUND: Final = 120.0  # seconds for one round
LONGEST_REST: Final = 5.0  # seconds between rounds


def run() -> int:
    """Do everything once; returns 0 if all of it is as it should be."""
    this_run = Run.starting_now()
    prepare()
    with web_server(settings.SHOP_URL) as web:
        customers = Customers(Browser(settings.SHOP_URL))
        placed = [customers.order(cards_may_fail=False) for _ in range(ORDERS)]
        customers.import_supplies()
        _work(this_run, web)
        customers.refresh_prices()
        _work(this_run, web)
    found = checks(this_run, placed)
    print(table(figures(this_run), found))
    return 0 if all(check.holds for check in found) else 1


def _work(this_run: Run, web: Process) -> None:
    """Drain until nothing waits, not even for its next attempt, or time is up."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        with running("workers", "runworkers", "--drain") as workers:
            workers.wait(within=ROUND)
        wait = this_run.next_job_in()
        if wait is None:
            return
        pause(min(max(wait, 0.1), LONGEST_REST), web)
