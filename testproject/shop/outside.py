"""The other parties, which a real shop would find elsewhere: the payment provider, the
supplier and the partner that gets webhooks."""

from __future__ import annotations

import json
from decimal import Decimal
from uuid import UUID, uuid4
from zlib import crc32

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from testproject.shop import webhooks
from testproject.shop.models import Order, WebhookReceipt

GOOD_CARD = "tok_visa_4242"
DECLINED_CARD = "tok_visa_0002"
BUSY_EVERY = 3  # orders; of these the partner refuses the first delivery
RETRY_AFTER = 1  # seconds


class Declined(Exception):
    """The provider does not take this card."""


def charge(card_token: str, amount: Decimal) -> str:
    """The payment provider takes the amount; returns its reference.

    Raises Declined.
    """
    if card_token != GOOD_CARD:
        raise Declined("insufficient funds")
    return f"ch_{uuid4().hex[:24]}"


def price_of(sku: str) -> Decimal:
    """The supplier's price of today."""
    return Decimal(500 + crc32(sku.encode()) % 9_500) / 100


@require_GET
def supplier_price(request: HttpRequest, sku: str) -> HttpResponse:
    """The supplier tells a price."""
    return JsonResponse({"sku": sku, "price": str(price_of(sku))})


@csrf_exempt
@require_POST
def partner_webhook(request: HttpRequest) -> HttpResponse:
    """The partner takes a webhook; of some orders only when it comes again."""
    signature = request.headers.get(webhooks.SIGNATURE, "")
    if not webhooks.is_genuine(request.body, signature):
        return HttpResponse("The signature is wrong.\n", status=401)
    content = json.loads(request.body)
    order = Order.objects.filter(pk=content["order"]).first()
    if order is None:
        return HttpResponse("There is no such order.\n", status=404)
    busy = order.pk % BUSY_EVERY == 0 and not order.receipts.exists()
    receipt = WebhookReceipt.objects.create(
        order=order,
        delivery=UUID(request.headers[webhooks.DELIVERY]),
        event=content["event"],
        answer=503 if busy else 200,
    )
    headers = {"Retry-After": str(RETRY_AFTER)} if busy else {}
    return HttpResponse(status=receipt.answer, headers=headers)
