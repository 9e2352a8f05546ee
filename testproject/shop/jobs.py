"""The shop's work as jobs: each function of ``work``, and how its jobs are run."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import NAMESPACE_URL, UUID, uuid5

from PIL import UnidentifiedImageError

from django_jobqueue import AlreadyArchived, Context, cron, every, job
from django_jobqueue.retries import exponential
from testproject.shop import work
from testproject.shop.models import Order

SOON = partial(exponential, base=timedelta(seconds=5), cap=timedelta(minutes=30))


@job(priority=50, delivery="at_most_once", timeout=30, sensitive=("card_token",))
def capture_payment(order_id: int, card_token: str) -> str:
    """Take the customer's money, never twice."""
    return work.capture_payment(order_id, card_token)


@job(priority=40, atomic=True)
def post_ledger(order_id: int) -> str:
    """Post what the customer owes and what the shop earned."""
    return work.post_ledger(order_id)


@job(priority=20, timeout=60)
def render_invoice(order_id: int) -> str:
    """Write the invoice of an order, and enqueue that it is sent."""
    return work.render_invoice(order_id, send=_send_once)


@job(queue="mail", timeout=60, max_attempts=10)
def send_invoice(order_id: int) -> str:
    """Mail the invoice to the customer."""
    return work.send_invoice(order_id)


@job(
    queue="webhooks",
    concurrency=4,
    timeout=15,
    max_attempts=8,
    backoff=SOON,
    takes_context=True,
    summary="{event} for order {order_id}",
)
def deliver_webhook(context: Context, order_id: int, event: str) -> int:
    """Tell the partner what happened to an order, until it has understood."""
    return work.deliver_webhook(order_id, event, delivery=str(context.id))


@job(queue="images", priority=-10, timeout=60, retry={UnidentifiedImageError: False})
def resize_image(product_id: int) -> str:
    """Make the small picture of a product."""
    return work.resize_image(product_id)


@job(priority=-10, atomic=True, timeout=300)
def import_products(name: str) -> int:
    """Enqueue an import for each row of a price list; all of them, or none."""
    rows = work.rows_to_import(name)
    return len(import_product.enqueue_many({"row": row} for row in rows))


@job(priority=-20)
def import_product(row: dict[str, str]) -> None:
    """Make or change one product, from a row of a price list."""
    work.import_product(row)


@job(timeout=60, expires_in=timedelta(hours=1))
async def refresh_prices(skus: list[str]) -> dict[str, str]:
    """Ask the supplier for today's prices, all at the same time.

    A refresh that waited for an hour is of no use: the next one is there by then.
    """
    return await work.refresh_prices(skus)


@job(schedule=every(minutes=5), expires_in=timedelta(minutes=5))
def refresh_all_prices() -> None:
    """Enqueue a refresh of all prices."""
    refresh_prices.enqueue_many({"skus": skus} for skus in work.all_skus())


@job(schedule=cron("30 2 * * *"))
def report_sales() -> dict[str, str]:
    """Add up what was sold on the day before."""
    return work.report_sales()


@job(schedule=cron("0 4 * * SUN"), atomic=True)
def forget_receipts() -> int:
    """Delete old receipts of webhooks."""
    return work.forget_receipts()


def mail_id(order: Order) -> UUID:
    """The id of the job that mails the invoice of this order."""
    return uuid5(NAMESPACE_URL, f"https://harbour.example/invoices/{order.number}")


def _send_once(order: Order) -> None:
    """Enqueue the mail under an id of the order's: a second invoice sends none."""
    with suppress(AlreadyArchived):
        send_invoice.using(id=mail_id(order)).enqueue(order_id=order.pk)
