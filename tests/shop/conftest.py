"""A shop for each test: its files in a folder of the test, its address where needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import django
import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import connections

from django_jobqueue.operations import run_now
from testproject.shop import background, catalogue
from testproject.shop.catalogue import PRICE_LIST, write_price_list
from testproject.shop.checkout import place_order
from testproject.shop.images import in_media
from testproject.shop.models import Customer, Order, Product
from testproject.shop.outside import GOOD_CARD
from testproject.shop.run import Run
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued

MAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"


@pytest.fixture(autouse=True)
def shop_settings(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """What the shop's settings module says, for this test; and a third of the products,
    as their pictures take long."""
    monkeypatch.setattr(catalogue, "MADE", catalogue.MADE[:1])
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.MEDIA_URL = "media/"
    settings.MAIL_FOLDER = tmp_path / "mail"
    settings.WEBHOOK_SECRET = "only-for-this-test"
    settings.SHOP_URL = "http://127.0.0.1:9"  # nobody answers there
    if django.VERSION >= (6, 1):
        options = {"file_path": settings.MAIL_FOLDER}
        settings.MAILERS = {"default": {"BACKEND": MAIL_BACKEND, "OPTIONS": options}}
    else:
        settings.EMAIL_BACKEND = MAIL_BACKEND
        settings.EMAIL_FILE_PATH = settings.MAIL_FOLDER
    return settings


@pytest.fixture
def open_shop(live_server: Any, shop_settings: Any) -> str:
    """The address of the shop, which answers there."""
    shop_settings.SHOP_URL = live_server.url
    return str(live_server.url)


@pytest.fixture
def make_worker(
    make_worker: Callable[..., HandDriven],
) -> Iterator[Callable[..., HandDriven]]:
    """The suite's, whose async handlers leave no connection of theirs behind."""
    made: list[HandDriven] = []

    def make(**plan: Any) -> HandDriven:
        made.append(make_worker(**plan))
        return made[-1]

    yield make
    for executor in (e for worker in made for e in worker.worker.executors):
        loop = getattr(executor, "_loop", None)
        if loop is not None:
            closing = sync_to_async(connections.close_all)()
            asyncio.run_coroutine_threadsafe(closing, loop).result(5)


def whole_run(make_worker: Callable[..., HandDriven]) -> Run:
    """Let the shop do everything that it can; the workers are driven by hand."""
    run = Run.starting_now()
    write_price_list(in_media(PRICE_LIST), rows=5)
    call_command("load_shop", stdout=StringIO())
    background.import_products.enqueue(name=PRICE_LIST)
    make_worker().work()
    background.refresh_prices.enqueue(skus=["SUP-00001"])
    run_now([job.id for job in queued()])
    make_worker().work()
    return run


@pytest.fixture
def product(transactional_db: None) -> Product:
    """Something to buy."""
    return Product.objects.create(
        sku="HG-001", name="Mug", price=Decimal("14.50"), image="products/HG-001.png"
    )


@pytest.fixture
def place(product: Product) -> Callable[..., Order]:
    """Place an order: ``place(card_token=DECLINED_CARD)``."""

    def order(quantity: int = 2, card_token: str = GOOD_CARD) -> Order:
        customer, _ = Customer.objects.get_or_create(
            email="ada@example.com", defaults={"name": "Ada Lindqvist"}
        )
        return place_order(customer, {product: quantity}, card_token)

    return order
