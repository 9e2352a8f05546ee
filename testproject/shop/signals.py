"""What the shop does when something is saved."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from testproject.shop import background
from testproject.shop.models import Order


@receiver(post_save, sender=Order, dispatch_uid="shop.announce_order")
def announce_order(instance: Order, created: bool, **kwargs: Any) -> None:
    """Tell the partner about a new order, once its transaction is committed."""
    if created:
        background.deliver_webhook.enqueue(order_id=instance.pk, event="order.placed")
