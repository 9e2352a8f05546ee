"""The pages of the shop tell what has happened."""

from __future__ import annotations

from collections.abc import Callable

from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from testproject.demo.browser import Browser
from testproject.demo.customers import Customers
from testproject.shop import admin, jobs  # noqa: F401
from testproject.shop.models import Order, Product
from testproject.shop.outside import DECLINED_CARD
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued

AGAIN = '<meta http-equiv="refresh"'


def test_the_page_of_a_new_order_waits_for_its_jobs(
    place: Callable[..., Order], client: Client
) -> None:
    page = client.get(place().get_absolute_url()).text
    assert page.count("Not yet.") == 4
    assert AGAIN in page


def test_the_page_of_a_finished_order_shows_what_came_of_it(
    place: Callable[..., Order], client: Client, worker: HandDriven, open_shop: str
) -> None:
    orders = [place() for _ in range(3)]
    worker.work()
    delivered = next(o for o in orders if o.receipts.filter(answer=200).exists())
    page = client.get(delivered.get_absolute_url()).text
    assert "€ 29.00 captured" in page
    assert delivered.invoice.file.url in page
    assert "revenue" in page
    assert "order.placed" in page
    assert "Not yet." not in page
    assert AGAIN not in page


def test_the_first_page_shows_a_declined_payment(
    place: Callable[..., Order], client: Client, worker: HandDriven
) -> None:
    place(card_token=DECLINED_CARD)
    worker.work()
    assert "declined</span>" in client.get("/").text


def test_the_buttons_of_the_supplies_enqueue_a_job(
    client: Client, transactional_db: None
) -> None:
    Product.objects.create(sku="SUP-1", name="Hook", price=1)
    client.post("/supplies/import/")
    client.post("/supplies/refresh/")
    assert [(job.job_type_id, job.data) for job in queued()] == [
        (jobs.import_products.name, {"name": "imports/price-list.csv"}),
        (jobs.refresh_prices.name, {"skus": ["SUP-1"]}),
    ]


def test_a_customer_with_a_browser_can_order(product: Product, open_shop: str) -> None:
    for number in range(2):
        Product.objects.create(
            sku=f"HG-1{number}", name="Bowl", price=1, image="products/bowl.png"
        )
    key = Customers(Browser(open_shop)).order(cards_may_fail=False)
    assert Order.objects.get(pk=key).lines.count() == 3


def test_every_page_of_the_shops_admin_opens(
    place: Callable[..., Order], client: Client, worker: HandDriven
) -> None:
    place()
    worker.work()
    client.force_login(User.objects.create_superuser("admin"))
    models = apps.get_app_config("shop").get_models()
    pages = [
        reverse(f"admin:shop_{one._meta.model_name}_changelist")
        for one in models
        if django_admin.site.is_registered(one)
    ]
    assert len(pages) == 7
    assert {client.get(page).status_code for page in pages} == {200}
