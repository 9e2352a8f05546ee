"""The shop's work as tasks: each function of ``work``, declared for Django's Tasks.

``import_product`` has the ``@task`` of Django itself. The others say more about how
they are run than Django 6.0 lets them; ``django_jobqueue.backends.task`` is the same
decorator, with the options of ``@job``.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

import django
from PIL import UnidentifiedImageError

from django_jobqueue import DuplicateJob, cron, every
from django_jobqueue.backends import JobTaskContext, task
from django_jobqueue.retries import exponential
from testproject.shop import work
from testproject.shop.models import Invoice, Order

if django.VERSION >= (6, 0):
    from django.tasks import task as djangos_task
else:
    from django_tasks import task as djangos_task

SOON = partial(exponential, base=timedelta(seconds=5), cap=timedelta(minutes=30))


@task(priority=50, delivery="at_most_once", timeout=30, sensitive=("card_token",))
def capture_payment(order_id: int, card_token: str) -> str:
    """Take the customer's money, never twice."""
    return work.capture_payment(order_id, card_token)


@task(priority=40, atomic=True)
def post_ledger(order_id: int) -> str:
    """Post what the customer owes and what the shop earned."""
    return work.post_ledger(order_id)


@task(priority=20, timeout=60)
def render_invoice(order_id: int) -> str:
    """Write the invoice of an order, and enqueue that it is sent."""
    return work.render_invoice(order_id, send=_send_once)


@task(queue_name="mail", timeout=60, max_attempts=10, unique=True)
def send_invoice(order_id: int) -> str:
    """Mail the invoice to the customer."""
    return work.send_invoice(order_id)


@task(
    queue_name="webhooks",
    concurrency=4,
    timeout=15,
    max_attempts=8,
    backoff=SOON,
    takes_context=True,
)
def deliver_webhook(context: JobTaskContext, order_id: int, event: str) -> int:
    """Tell the partner what happened to an order, until it has understood."""
    return work.deliver_webhook(order_id, event, delivery=context.task_result.id)


@task(
    queue_name="images", priority=-10, timeout=60, retry={UnidentifiedImageError: False}
)
def resize_image(product_id: int) -> str:
    """Make the small picture of a product."""
    return work.resize_image(product_id)


@task(priority=-10, atomic=True, timeout=300)
def import_products(name: str) -> int:
    """Enqueue an import for each row of a price list; all of them, or none."""
    rows = work.rows_to_import(name)
    return len(import_product.enqueue_many({"row": row} for row in rows))


@djangos_task(priority=-20)
def import_product(row: dict[str, str]) -> None:
    """Make or change one product, from a row of a price list."""
    work.import_product(row)


@task(timeout=60, expires_in=timedelta(hours=1))
async def refresh_prices(skus: list[str]) -> dict[str, str]:
    """Ask the supplier for today's prices, all at the same time.

    A refresh that waited for an hour is of no use: the next one is there by then.
    """
    return await work.refresh_prices(skus)


@task(expires_in=timedelta(minutes=5))
def refresh_all_prices() -> None:
    """Enqueue a refresh of all prices."""
    refresh_prices.enqueue_many({"skus": skus} for skus in work.all_skus())


@task
def report_sales() -> dict[str, str]:
    """Add up what was sold on the day before."""
    return work.report_sales()


@task(atomic=True)
def forget_receipts() -> int:
    """Delete old receipts of webhooks."""
    return work.forget_receipts()


refresh_all_prices.at(every(minutes=5))()
report_sales.at(cron("30 2 * * *"))()
forget_receipts.at(cron("0 4 * * SUN"))()


def _send_once(order: Order) -> None:
    """Enqueue the mail, unless it waits or was sent."""
    if not Invoice.objects.filter(order=order, sent_at__isnull=False).exists():
        with suppress(DuplicateJob):
            send_invoice.enqueue(order_id=order.pk)
