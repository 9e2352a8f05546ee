"""What the shop does in the background, however it is declared: see ``background``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal

import httpx
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import F, Sum
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from httpx import codes

from django_jobqueue import Fail, Retry, current_job
from testproject.shop import images, outside, webhooks
from testproject.shop.catalogue import read_price_list
from testproject.shop.models import (
    Invoice,
    LedgerEntry,
    Order,
    OrderLine,
    Payment,
    Product,
    WebhookReceipt,
)

AT_ONCE = 50  # prices
RECEIPTS_KEPT = timedelta(days=90)


def capture_payment(order_id: int, card_token: str) -> str:
    """Charge the card, if that has not been done; returns the provider's reference."""
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


def post_ledger(order_id: int) -> str:
    """Write both sides of the posting, if they are not there; returns the amount."""
    order = Order.objects.get(pk=order_id)
    if order.ledger_entries.exists():  # as above
        return "posted before"
    account = LedgerEntry.Account
    LedgerEntry.objects.create(
        order=order, account=account.RECEIVABLE, debit=order.total
    )
    LedgerEntry.objects.create(order=order, account=account.REVENUE, credit=order.total)
    return str(order.total)


def render_invoice(order_id: int, send: Callable[[Order], None]) -> str:
    """Write the invoice, and see to it that it is sent; returns the file's name."""
    order = Order.objects.select_related("customer").get(pk=order_id)
    lines = order.lines.select_related("product")
    name = f"invoices/{order.number}.html"
    path = images.in_media(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = render_to_string("shop/invoice.html", {"order": order, "lines": lines})
    path.write_text(text, encoding="utf-8")
    with transaction.atomic():
        Invoice.objects.update_or_create(order=order, defaults={"file": name})
        send(order)
    return name


def send_invoice(order_id: int) -> str:
    """Mail the invoice; returns the address."""
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


def deliver_webhook(order_id: int, event: str, delivery: str) -> int:
    """Send the event to the partner, under an id that is the same in each attempt;
    returns the status of a good answer."""
    body = webhooks.body_of(Order.objects.get(pk=order_id), event)
    headers = {
        "Content-Type": "application/json",
        webhooks.SIGNATURE: webhooks.signature_of(body),
        webhooks.DELIVERY: delivery,
    }
    url = settings.SHOP_URL + reverse("shop:partner-webhook")
    answer = httpx.post(url, content=body, headers=headers)
    found = f"The partner answered {answer.status_code}."
    if answer.is_server_error or answer.status_code == codes.TOO_MANY_REQUESTS:
        raise Retry(found, after=webhooks.retry_after(answer.headers))
    if not answer.is_success:
        raise Fail(found)
    return answer.status_code


def resize_image(product_id: int) -> str:
    """Make the small picture; returns the file's name."""
    product = Product.objects.get(pk=product_id)
    name = f"thumbnails/{product.sku}.png"
    images.make_thumbnail(images.in_media(product.image.name), images.in_media(name))
    Product.objects.filter(pk=product.pk).update(thumbnail=name)
    return name


def rows_to_import(name: str) -> Iterator[dict[str, str]]:
    """The rows of a price list, as long as nobody cancels the job that reads it."""
    job = current_job()
    for row in job.progress(read_price_list(images.in_media(name))):
        job.check_cancelled()
        yield row


def import_product(row: dict[str, str]) -> None:
    """Write the product of a row."""
    Product.objects.bulk_create(
        [Product(**{**row, "price": Decimal(row["price"])})],
        update_conflicts=True,
        unique_fields=["sku"],
        update_fields=["name", "description", "price"],
    )


def all_skus() -> Iterator[list[str]]:
    """The products, in parts of which the supplier is asked at once."""
    skus = list(Product.objects.values_list("sku", flat=True))
    for start in range(0, len(skus), AT_ONCE):
        yield skus[start : start + AT_ONCE]


def report_sales() -> dict[str, str]:
    """The sales of the day before the night that this job is for."""
    night = timezone.localtime(current_job().fires_at or timezone.now())
    day = night.date() - timedelta(days=1)
    lines = OrderLine.objects.filter(order__created_at__date=day)
    total = lines.aggregate(total=Sum(F("unit_price") * F("quantity")))["total"] or 0
    orders = lines.values("order").distinct().count()
    return {"day": day.isoformat(), "orders": str(orders), "total": str(total)}


def forget_receipts() -> int:
    """Delete what the partner received long ago; returns how many."""
    old = timezone.now() - RECEIPTS_KEPT
    return WebhookReceipt.objects.filter(received_at__lt=old).delete()[0]


async def refresh_prices(skus: list[str]) -> dict[str, str]:
    """Ask for all prices at the same time, and write them; returns them."""
    async with httpx.AsyncClient(base_url=settings.SHOP_URL) as supplier:
        found = await asyncio.gather(*(_price(supplier, sku) for sku in skus))
    prices = dict(zip(skus, found, strict=True))
    for sku, price in prices.items():
        await Product.objects.filter(sku=sku).aupdate(price=Decimal(price))
    return prices


async def _price(supplier: httpx.AsyncClient, sku: str) -> str:
    answer = await supplier.get(reverse("shop:supplier-price", args=[sku]))
    return str(answer.raise_for_status().json()["price"])
