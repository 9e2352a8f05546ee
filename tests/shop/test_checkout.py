"""Buying: the form, the order, and the jobs that follow it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError
from django.test import Client

from testproject.shop import jobs
from testproject.shop.models import Order, Product
from testproject.shop.outside import GOOD_CARD
from tests.support.rows import queued

FOLLOWING = {
    jobs.capture_payment.name,
    jobs.post_ledger.name,
    jobs.render_invoice.name,
    jobs.deliver_webhook.name,
}
BUYER = {"name": "Ada", "email": "ada@example.com", "card_token": GOOD_CARD}


def test_the_checkout_makes_an_order_and_enqueues_what_follows(
    client: Client, product: Product
) -> None:
    form = {**BUYER, f"quantity_{product.pk}": 2}
    answer = client.post("/checkout/", form)
    order = Order.objects.get()
    assert answer.url == order.get_absolute_url()
    assert [(line.product, line.quantity) for line in order.lines.all()] == [
        (product, 2)
    ]
    assert {job.job_type_id for job in queued()} == FOLLOWING
    assert {job.data["order_id"] for job in queued()} == {order.pk}


def test_an_order_that_cannot_be_written_leaves_no_job(
    place: Callable[..., Order],
) -> None:
    with pytest.raises(IntegrityError):
        place(quantity=-1)
    assert not Order.objects.exists()
    assert queued() == []


def test_an_order_of_nothing_is_refused_with_a_sentence(
    client: Client, product: Product
) -> None:
    answer = client.post("/checkout/", BUYER)
    assert "Choose at least one product." in answer.text
    assert not Order.objects.exists()


def test_the_form_begins_with_the_product_that_was_chosen(
    client: Client, product: Product
) -> None:
    answer = client.get("/checkout/", {"product": product.pk})
    assert f'name="quantity_{product.pk}" value="1"' in answer.text


def test_a_customer_is_known_by_the_address(client: Client, product: Product) -> None:
    for name in ("Ada", "Ada Lindqvist"):
        client.post("/checkout/", {**BUYER, "name": name, f"quantity_{product.pk}": 1})
    assert [order.customer.name for order in Order.objects.all()] == ["Ada", "Ada"]
