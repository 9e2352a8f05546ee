"""Failures as the shop's handlers have them: each is raised, caught and kept."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from django_jobqueue.domain.failures import Failure
from testproject.screenshots.settings import HOME
from testproject.settings import BASE
from testproject.shop import images, jobs, outside
from testproject.shop.catalogue import read_price_list
from testproject.shop.models import Customer, Order, Product

PATHS = {
    str(BASE): HOME,
    sysconfig.get_path("purelib"): "/srv/venv/lib/python3.13/site-packages",
    sysconfig.get_path("stdlib"): "/usr/lib/python3.13",
}


def kept(job_type: str, call: Callable[..., Any], *arguments: Any) -> Failure:
    """What is kept of the exception that this call raises, as if it had been raised on
    a server."""
    try:
        call(*arguments)
    except Exception as error:
        trace = error.__traceback__
        assert trace is not None
        error.__traceback__ = trace.tb_next  # without this function
        return _elsewhere(Failure.of(error, job_type=job_type))
    raise AssertionError(f"{call} does not fail")


def failures() -> dict[str, Failure]:
    """One of each kind, by a short name."""
    shop = "testproject.shop"
    customer = Customer.objects.create(name="Ada", email="ada@harbour.example")
    order = Order.objects.create(customer=customer).pk
    product = Product.objects.create(sku="A-40", price=40, image="products/a-40.png")
    context: Any = SimpleNamespace(id=uuid4())  # what the handler reads of it
    return {
        "refused": kept(
            f"{shop}.deliver_webhook", jobs.deliver_webhook, context, order, "paid"
        ),
        "order": kept(f"{shop}.render_invoice", jobs.render_invoice, 48_211),
        "picture": kept(f"{shop}.resize_image", jobs.resize_image, product.pk),
        "declined": kept(
            f"{shop}.capture_payment",
            jobs.capture_payment,
            order,
            outside.DECLINED_CARD,
        ),
        "list": kept(f"{shop}.import_products", _read_list),
        "lost": Failure.synthetic("WorkerLost", "", job_type=f"{shop}.refresh_prices"),
    }


def _read_list() -> None:
    list(read_price_list(images.in_media("imports/2026-11-21.csv")))


def _elsewhere(failure: Failure) -> Failure:
    """The same with the paths of a server."""
    frames = [{**frame, "file": _path(frame["file"])} for frame in failure.frames]
    return replace(
        failure,
        message=_path(failure.message),
        traceback=_path(failure.traceback),
        frames=frames,
    )


def _path(text: str) -> str:
    for here, there in PATHS.items():
        text = text.replace(here, there)
    return text
