"""The webhook of an order: what is sent, and how both sides sign it."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from django.conf import settings

from testproject.shop.models import Order

SIGNATURE = "X-Shop-Signature"
DELIVERY = "X-Shop-Delivery"


def body_of(order: Order, event: str) -> bytes:
    """The JSON text that announces an event of an order."""
    lines = [
        {"sku": line.product.sku, "quantity": line.quantity, "amount": str(line.amount)}
        for line in order.lines.select_related("product")
    ]
    content = {
        "event": event,
        "order": order.pk,
        "number": order.number,
        "total": str(order.total),
        "lines": lines,
    }
    return json.dumps(content).encode()


def signature_of(body: bytes) -> str:
    """The value of the signature's header."""
    key = settings.WEBHOOK_SECRET.encode()
    return "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()


def is_genuine(body: bytes, signature: str) -> bool:
    """Whether this body was signed with our secret."""
    return hmac.compare_digest(signature_of(body).encode(), signature.encode())


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The wait that an answer asks for, in seconds; None if it names none or a date."""
    wait = headers.get("Retry-After", "")
    return float(wait) if wait.isdecimal() else None
