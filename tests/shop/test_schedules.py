"""The shop's schedules: the prices, the night's report, the clean-up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import uuid4

import pytest
from django.utils import timezone

from django_jobqueue import testing
from django_jobqueue.contrib.schedules.testing import firings
from testproject.shop import jobs
from testproject.shop.models import Order, Product, WebhookReceipt

NIGHT = datetime(2026, 3, 9, 2, 30, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def test_prices_are_asked_for_every_five_minutes() -> None:
    since = datetime(2026, 3, 9, 0, 1, tzinfo=UTC)
    until = since + timedelta(minutes=10)
    moments = firings(jobs.refresh_all_prices, since, until)
    assert [moment.minute for moment in moments] == [5, 10]
    Product.objects.bulk_create(Product(sku=f"S-{n}", price=1) for n in range(120))
    testing.perform(jobs.refresh_all_prices)
    testing.assert_enqueued(jobs.refresh_prices, count=3)


def test_the_nights_report_is_of_the_day_before_whenever_it_runs(
    place: Callable[..., Order], product: Product
) -> None:
    place(quantity=2)
    place(quantity=1)
    night = timezone.now() + timedelta(days=1)
    performed = testing.perform(
        jobs.report_sales, metadata={"fires_at": night.isoformat()}
    )
    total = Decimal(performed.value["total"])
    assert (performed.value["orders"], total) == ("2", 3 * product.price)
    other = testing.perform(jobs.report_sales, metadata={"fires_at": NIGHT.isoformat()})
    assert other.value == {"day": "2026-03-08", "orders": "0", "total": "0"}


def test_old_receipts_are_forgotten(place: Callable[..., Order]) -> None:
    order = place()
    for days in (89, 91):
        receipt = WebhookReceipt.objects.create(
            order=order, delivery=uuid4(), event="paid", answer=200
        )
        old = timezone.now() - timedelta(days=days)
        WebhookReceipt.objects.filter(pk=receipt.pk).update(received_at=old)
    assert testing.perform(jobs.forget_receipts).value == 1
    assert WebhookReceipt.objects.count() == 1
