"""The handlers of the shop, run by a worker that is driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from PIL import Image

from django_jobqueue import replay
from django_jobqueue.operations import run_now
from testproject.shop import jobs
from testproject.shop.catalogue import write_price_list
from testproject.shop.images import THUMBNAIL, draw_product, in_media, save
from testproject.shop.mails import read_mails
from testproject.shop.models import Invoice, LedgerEntry, Order, Payment, Product
from testproject.shop.outside import DECLINED_CARD, price_of
from tests.support.hand_driven import HandDriven
from tests.support.rows import archived, queued

PRICE_LIST = "imports/list.csv"


def test_an_order_is_paid_posted_and_mailed_with_its_invoice(
    place: Callable[..., Order], worker: HandDriven, shop_settings: Any
) -> None:
    order = place(quantity=3)
    worker.work()
    total = Decimal("43.50")
    (payment,) = order.payments.all()
    (job,) = archived(job_type=jobs.capture_payment.name)
    assert (payment.state, payment.amount) == ("captured", total)
    assert payment.reference == job.result
    entries = order.ledger_entries.values_list("account", "debit", "credit")
    assert list(entries) == [("receivable", total, 0), ("revenue", 0, total)]
    invoice = Invoice.objects.get(order=order)
    text = Path(invoice.file.path).read_text()
    (mail,) = read_mails(shop_settings.MAIL_FOLDER)
    assert order.number in text
    assert "€ 43.50" in text
    assert (mail.order, mail.to) == (order.number, "ada@example.com")
    assert mail.attachments == (text,)
    assert invoice.sent_at is not None


def test_what_is_replayed_charges_posts_and_mails_nothing_twice(
    place: Callable[..., Order], worker: HandDriven, shop_settings: Any
) -> None:
    order = place()
    worker.work()
    names = [
        handler.name
        for handler in (jobs.capture_payment, jobs.post_ledger, jobs.render_invoice)
    ]
    for name in names:
        replay(archived(job_type=name)[0].id)
    worker.work()
    captures, postings, invoices = (archived(job_type=name) for name in names)
    assert captures[0].result == captures[1].result
    assert Payment.objects.filter(order=order).count() == 1
    assert [job.result for job in postings] == ["29.00", "posted before"]
    assert LedgerEntry.objects.count() == 2
    assert [job.status for job in invoices] == ["succeeded", "succeeded"]
    assert len(list(read_mails(shop_settings.MAIL_FOLDER))) == 1


def test_a_declined_card_is_recorded_and_not_tried_again(
    place: Callable[..., Order], worker: HandDriven
) -> None:
    order = place(card_token=DECLINED_CARD)
    worker.work()
    (job,) = archived(job_type=jobs.capture_payment.name)
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error_message == "The card was declined: insufficient funds."
    assert [payment.state for payment in order.payments.all()] == ["declined"]


def test_a_partner_that_is_busy_gets_the_webhook_again_when_it_said(
    place: Callable[..., Order], make_worker: Callable[..., HandDriven], open_shop: str
) -> None:
    orders = [place() for _ in range(3)]  # the partner refuses one of any three
    make_worker().work()
    (waiting,) = queued()
    wait = waiting.run_after - waiting.created_at
    assert waiting.job_type_id == jobs.deliver_webhook.name
    assert waiting.attempts == 1
    assert wait.total_seconds() >= 1
    run_now([waiting.id])
    make_worker().work()
    answers = sorted([r.answer for r in order.receipts.all()] for order in orders)
    assert answers == [[200], [200], [503, 200]]
    assert queued() == []


def test_a_webhook_that_nobody_wants_fails_at_once(
    place: Callable[..., Order],
    worker: HandDriven,
    open_shop: str,
    shop_settings: Any,
) -> None:
    shop_settings.SHOP_URL = open_shop + "/elsewhere"
    place()
    worker.work()
    (job,) = archived(job_type=jobs.deliver_webhook.name)
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error_message == "The partner answered 404."


def test_a_webhook_that_reaches_nobody_is_tried_again(
    place: Callable[..., Order], worker: HandDriven
) -> None:
    place()
    worker.work()
    (job,) = queued()
    assert (job.job_type_id, job.attempts) == (jobs.deliver_webhook.name, 1)


def test_a_picture_is_made_small(product: Product, worker: HandDriven) -> None:
    save(draw_product("mug", "#457b9d", "#e3edf2"), in_media(product.image.name))
    jobs.resize_image.enqueue(product_id=product.pk)
    worker.work()
    product.refresh_from_db()
    with Image.open(product.thumbnail.path) as image:
        assert image.size == THUMBNAIL


def test_a_file_that_is_no_picture_fails_at_once(
    product: Product, worker: HandDriven
) -> None:
    path = in_media(product.image.name)
    path.parent.mkdir(parents=True)
    path.write_text("no picture")
    jobs.resize_image.enqueue(product_id=product.pk)
    worker.work()
    (job,) = archived()
    assert (job.status, job.attempts) == ("failed", 1)
    assert job.error_class == "PIL.UnidentifiedImageError"


def test_a_price_list_becomes_a_job_for_each_of_its_rows_and_changes_products(
    worker: HandDriven,
) -> None:
    write_price_list(in_media(PRICE_LIST), rows=10)
    for _ in range(2):
        jobs.import_products.enqueue(name=PRICE_LIST)
        worker.work()
        assert Product.objects.count() == 10
        assert not Product.objects.filter(name="another").exists()
        Product.objects.update(name="another", price=1)
    assert len(archived(job_type=jobs.import_product.name, status="succeeded")) == 20
    assert archived(job_type=jobs.import_products.name)[0].result == 10


def test_a_price_list_that_breaks_off_enqueues_nothing(worker: HandDriven) -> None:
    path = in_media(PRICE_LIST)
    write_price_list(path, rows=3)
    path.write_bytes(path.read_bytes() + b"SUP-00004,caf\xe9,,1.00\n")  # not UTF-8
    jobs.import_products.enqueue(name=PRICE_LIST)
    worker.work()
    assert [job.job_type_id for job in queued()] == [jobs.import_products.name]
    assert not Product.objects.exists()


def test_prices_are_those_of_the_supplier(worker: HandDriven, open_shop: str) -> None:
    skus = [f"SUP-{number}" for number in range(5)]
    Product.objects.bulk_create(Product(sku=sku, name=sku, price=1) for sku in skus)
    jobs.refresh_prices.enqueue(skus=skus)
    worker.work()
    prices = dict(Product.objects.values_list("sku", "price"))
    assert prices == {sku: price_of(sku) for sku in skus}
