"""Placing an order: rows and jobs in one transaction."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from testproject.shop import background
from testproject.shop.models import Customer, Order, OrderLine, Product


def place_order(
    customer: Customer, quantities: Mapping[Product, int], card_token: str
) -> Order:
    """Make the order and enqueue what has to be done for it, or neither."""
    with transaction.atomic():
        order = Order.objects.create(customer=customer)
        OrderLine.objects.bulk_create(
            OrderLine(
                order=order,
                product=product,
                quantity=quantity,
                unit_price=product.price,
            )
            for product, quantity in quantities.items()
        )
        background.capture_payment.enqueue(order_id=order.pk, card_token=card_token)
        background.post_ledger.enqueue(order_id=order.pk)
        background.render_invoice.enqueue(order_id=order.pk)
    return order
