"""What the shop does in the background."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from functools import partial
from uuid import NAMESPACE_URL, UUID, uuid5

import httpx
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from httpx import codes
from PIL import UnidentifiedImageError

from django_jobqueue import AlreadyArchived, Context, Fail, Retry, job
from django_jobqueue.retries import exponential
from testproject.shop import images, outside, webhooks
from testproject.shop.catalogue import read_price_list
from testproject.shop.models import Invoice, LedgerEntry, Order, Payment, Product

SOON = partial(exponential, base=timedelta(seconds=5), cap=timedelta(minutes=30))


@job(priority=50, delivery="at_most_once", timeout=30, sensitive=("card_token",))
def capture_payment(order_id: int, card_token: str) -> str:
    """Take the customer's money, never twice."""
    order = Order.objects.get(pk=order_id)
    earlier = order.payments.filter(state=Payment.State.CAPTURED).first()
    if earlier:  # somebody replays a job that succeeded
        return earlier.reference
    payment = Payment(order=order, amount=order.total, state=Payment.State.CAPTURED)
    try:
        payment.reference = outside.charge(card_token, payment.amount)
    except outside.Declined as error:
        payment.state = Payment.State.DECLINED
        payment.save()
        raise Fail(f"The card was declined: {error}.") from error
    payment.save()
    return payment.reference


@job(priority=40, atomic=True)
def post_ledger(order_id: int) -> str:
    """Post what the customer owes and what the shop earned."""
    order = Order.objects.get(pk=order_id)
    if order.ledger_entries.exists():  # as above
        return "posted before"
    account = LedgerEntry.Account
    LedgerEntry.objects.create(
        order=order, account=account.RECEIVABLE, debit=order.total
    )
    LedgerEntry.objects.create(order=order, account=account.REVENUE, credit=order.total)
    return str(order.total)


@job(priority=20, timeout=60)
def render_invoice(order_id: int) -> str:
    """Write the invoice of an order, and enqueue that it is sent."""
    order = Order.objects.select_related("customer").get(pk=order_id)
    lines = order.lines.select_related("product")
    name = f"invoices/{order.number}.html"
    path = images.in_media(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = render_to_string("shop/invoice.html", {"order": order, "lines": lines})
    path.write_text(text, encoding="utf-8")
    with transaction.atomic():
        Invoice.objects.update_or_create(order=order, defaults={"file": name})
        _send_once(order)
    return name


@job(queue="mail", timeout=60, max_attempts=10)
def send_invoice(order_id: int) -> str:
    """Mail the invoice to the customer."""
    invoice = Invoice.objects.select_related("order__customer").get(order_id=order_id)
    order = invoice.order
    mail = EmailMessage(
        subject=f"Your invoice {order.number}",
        body=render_to_string("shop/mail.txt", {"order": order}),
        to=[order.customer.email],
        headers={"X-Shop-Order": order.number},
    )
    mail.attach_file(images.in_media(invoice.file.name))
    mail.send()
    Invoice.objects.filter(pk=invoice.pk).update(sent_at=timezone.now())
    return order.customer.email


@job(
    queue="webhooks",
    concurrency=4,
    timeout=15,
    max_attempts=8,
    backoff=SOON,
    takes_context=True,
)
def deliver_webhook(context: Context, order_id: int, event: str) -> int:
    """Tell the partner what happened to an order, until it has understood."""
    body = webhooks.body_of(Order.objects.get(pk=order_id), event)
    headers = {
        "Content-Type": "application/json",
        webhooks.SIGNATURE: webhooks.signature_of(body),
        webhooks.DELIVERY: str(context.id),
    }
    url = settings.SHOP_URL + reverse("shop:partner-webhook")
    answer = httpx.post(url, content=body, headers=headers)
    found = f"The partner answered {answer.status_code}."
    if answer.is_server_error or answer.status_code == codes.TOO_MANY_REQUESTS:
        raise Retry(found, after=webhooks.retry_after(answer.headers))
    if not answer.is_success:
        raise Fail(found)
    return answer.status_code


@job(queue="images", priority=-10, timeout=60, permanent=(UnidentifiedImageError,))
def resize_image(product_id: int) -> str:
    """Make the small picture of a product."""
    product = Product.objects.get(pk=product_id)
    name = f"thumbnails/{product.sku}.png"
    images.make_thumbnail(images.in_media(product.image.name), images.in_media(name))
    Product.objects.filter(pk=product.pk).update(thumbnail=name)
    return name


@job(priority=-10, atomic=True, timeout=300, takes_context=True)
def import_products(context: Context, name: str) -> int:
    """Enqueue an import for each row of a price list; all of them, or none."""
    calls = []
    for row in read_price_list(images.in_media(name)):
        context.check_cancelled()
        calls.append({"row": row})
    return len(import_product.enqueue_many(calls))


@job(priority=-20)
def import_product(row: dict[str, str]) -> None:
    """Make or change one product, from a row of a price list."""
    Product.objects.bulk_create(
        [Product(**{**row, "price": Decimal(row["price"])})],
        update_conflicts=True,
        unique_fields=["sku"],
        update_fields=["name", "description", "price"],
    )


@job(timeout=60, expires_in=timedelta(hours=1))
async def refresh_prices(skus: list[str]) -> dict[str, str]:
    """Ask the supplier for today's prices, all at the same time.

    A refresh that waited for an hour is of no use: the next one is there by then.
    """
    async with httpx.AsyncClient(base_url=settings.SHOP_URL) as supplier:
        found = await asyncio.gather(*(_price(supplier, sku) for sku in skus))
    prices = dict(zip(skus, found, strict=True))
    for sku, price in prices.items():
        await Product.objects.filter(sku=sku).aupdate(price=Decimal(price))
    return prices


async def _price(supplier: httpx.AsyncClient, sku: str) -> str:
    answer = await supplier.get(reverse("shop:supplier-price", args=[sku]))
    return str(answer.raise_for_status().json()["price"])


def _send_once(order: Order) -> None:
    """Enqueue the mail under an id of the order's: a second invoice sends none."""
    with suppress(AlreadyArchived):
        send_invoice.using(id=mail_id(order)).enqueue(order_id=order.pk)


def mail_id(order: Order) -> UUID:
    """The id of the job that mails the invoice of this order."""
    return uuid5(NAMESPACE_URL, f"https://harbour.example/invoices/{order.number}")
