"""The shop at work until somebody stops it."""

from __future__ import annotations

import math

from django.conf import settings

from testproject.demo.browser import Browser, Refused
from testproject.demo.customers import Customers
from testproject.demo.prepare import PASSWORD, USER, prepare
from testproject.demo.processes import Process, pause, running
from testproject.demo.web import web_server
from testproject.shop.views import supplied_products


def run(orders_every: float) -> None:
    """Serve and work; ends by Stopped, or Died if one of the processes did."""
    shop = settings.SHOP_URL
    prepare()
    with web_server(shop) as web, running("workers", "runworkers") as workers:
        _say_where(shop, web, workers, orders_every)
        customers = Customers(Browser(shop))
        if not supplied_products().exists():
            customers.import_supplies()
        while True:
            pause(orders_every or math.inf, web, workers)
            _order(customers)


def _order(customers: Customers) -> None:
    try:
        order = customers.order(cards_may_fail=True)
        print(f"Ordered: {settings.SHOP_URL}/orders/{order}/", flush=True)
    except Refused as error:
        print(f"An order could not be placed: {error}", flush=True)


def _say_where(shop: str, web: Process, workers: Process, orders_every: float) -> None:
    orders = f"one is placed every {orders_every:g} s" if orders_every else "by you"
    print(
        f"""
  The shop    {shop}/
  The admin   {shop}/admin/   user {USER}, password {PASSWORD}
  Logs        {web.log}
              {workers.log}
  Orders      {orders}

Press Ctrl-C to stop.
""",
        flush=True,
    )
