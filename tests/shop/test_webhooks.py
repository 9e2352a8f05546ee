"""The signature of webhooks, at both ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import uuid4

import pytest
from django.test import Client

from testproject.shop.models import Order, WebhookReceipt
from testproject.shop.webhooks import (
    DELIVERY,
    SIGNATURE,
    body_of,
    is_genuine,
    signature_of,
)

SIGNED = b'{"order": 1}'
RIGHT = "sha256=0cb59338921c317ff786661aca59c7f7a613145c59f16b34da0bba1ef9047edb"


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        (b'{"order": 2}', RIGHT),
        (SIGNED, RIGHT[:-1]),
        (SIGNED, RIGHT.upper()),
        (SIGNED, "sha256=\u00e9"),
        (SIGNED, ""),
    ],
)
def test_a_signature_fits_one_body_only(body: bytes, signature: str) -> None:
    assert is_genuine(SIGNED, RIGHT)
    assert not is_genuine(body, signature)


def test_the_body_tells_what_was_bought(place: Callable[..., Order]) -> None:
    order = place(quantity=2)
    assert json.loads(body_of(order, "order.placed")) == {
        "event": "order.placed",
        "order": order.pk,
        "number": order.number,
        "total": "29.00",
        "lines": [{"sku": "HG-001", "quantity": 2, "amount": "29.00"}],
    }


def test_the_partner_takes_no_webhook_with_a_wrong_signature(
    place: Callable[..., Order], client: Client
) -> None:
    body = body_of(place(), "order.placed")
    headers = {SIGNATURE: signature_of(b"another body"), DELIVERY: str(uuid4())}
    answer = client.post(
        "/partner/webhook/", body, content_type="application/json", headers=headers
    )
    assert answer.status_code == 401
    assert not WebhookReceipt.objects.exists()
