"""The report of a run: every line of it can say no."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from django.core.management import call_command

from django_jobqueue.models import ArchivedJob
from testproject.shop import jobs
from testproject.shop.catalogue import PRICE_LIST, own_items, write_price_list
from testproject.shop.images import in_media
from testproject.shop.models import (
    Customer,
    Invoice,
    LedgerEntry,
    Order,
    Payment,
    Product,
    WebhookReceipt,
)
from testproject.shop.report import Check, checks, report, table
from testproject.shop.run import Figures, Run, figures
from tests.shop.conftest import whole_run
from tests.support.hand_driven import HandDriven
from tests.support.rows import queued


@pytest.fixture
def run(make_worker: Callable[..., HandDriven], open_shop: str) -> Run:
    """A run that is over, and in which everything went well."""
    return whole_run(make_worker)


def wrong(run: Run) -> set[str]:
    """The names of the checks that do not hold."""
    found = checks(run, placed=[order.pk for order in run.orders])
    return {check.name for check in found if not check.holds}


def one_row_less(model: type) -> Callable[[], object]:
    """Remove the first row of a model."""
    return lambda: model.objects.first().delete()


def one_file_less(folder: str) -> Callable[[], object]:
    """Remove a file of the shop: that of its oldest order, or its first picture."""
    return lambda: min(in_media(folder).iterdir()).unlink()


def a_second_payment() -> None:
    """Charge a customer twice."""
    payment = Payment.objects.all()[0]
    payment.pk = None
    payment.save()


def a_second_mail() -> None:
    """Send the invoice of the newest order again."""
    jobs.send_invoice(order_id=Order.objects.all()[0].pk)


def an_order_without_jobs() -> None:
    """Make an order for which nothing was enqueued."""
    Order.objects.bulk_create([Order(customer=Customer.objects.all()[0])])


def a_failed_job() -> None:
    """Let a job have failed."""
    ArchivedJob.objects.filter(job_type=jobs.resize_image.name).update(status="failed")


DEEDS: list[tuple[Callable[[], object], set[str]]] = [
    (one_file_less("invoices"), {"invoices on disk", "invoices mailed once"}),
    (one_file_less("thumbnails"), {"pictures resized"}),
    (one_row_less(Invoice), {"invoices on disk", "invoices mailed once"}),
    (one_row_less(Payment), {"payments captured once"}),
    (one_row_less(LedgerEntry), {"ledger balances"}),
    (one_row_less(WebhookReceipt), {"webhooks delivered"}),
    (a_second_payment, {"payments captured once"}),
    (a_second_mail, {"invoices mailed once"}),
    (a_failed_job, {"every ended job succeeded"}),
    (
        lambda: Payment.objects.update(amount=1),
        {"payments captured once"},
    ),
    (
        lambda: LedgerEntry.objects.filter(account="revenue").update(credit=1),
        {"ledger balances"},
    ),
    (
        lambda: WebhookReceipt.objects.update(answer=200),
        {"webhooks delivered"},
    ),
    (
        lambda: Product.objects.filter(sku="SUP-00004").delete(),
        {"rows of the price list imported"},
    ),
    (
        lambda: ArchivedJob.objects.filter(job_type=jobs.refresh_prices.name).delete(),
        {"prices refreshed", "rows of the price list imported"},
    ),
    (
        lambda: jobs.import_product.enqueue(row={"sku": "SUP-9"}),
        {"no job is left"},
    ),
    (
        an_order_without_jobs,
        {
            "orders have their five jobs",
            "payments captured once",
            "ledger balances",
            "invoices on disk",
            "invoices mailed once",
            "webhooks delivered",
        },
    ),
]


def test_a_run_that_went_well_has_nothing_wrong_and_whatever_goes_wrong_is_named(
    run: Run,
) -> None:
    assert wrong(run) == set()
    assert {row.job_type for row in figures(run) if row.enqueued != row.succeeded} == (
        set()
    )
    (first, *_) = checks(run, placed=[-1])
    assert first == Check("orders placed are there", False, "0 of 1; not -1")
    loaded_again_nothing_changes()
    expected: set[str] = set()
    for deed, names in DEEDS:
        deed()
        expected |= names
        assert wrong(run) == expected, deed


def loaded_again_nothing_changes() -> None:
    before = [Product.objects.count(), Customer.objects.count(), Order.objects.count()]
    call_command("load_shop", stdout=StringIO())
    after = [Product.objects.count(), Customer.objects.count(), Order.objects.count()]
    assert after == before
    assert Product.objects.exclude(image="").count() == len(list(own_items()))
    assert queued() == []


def test_a_run_without_orders_is_not_well(transactional_db: None) -> None:
    write_price_list(in_media(PRICE_LIST), rows=1)
    found = checks(Run.starting_now(), placed=[])
    assert [check.name for check in found if check.holds] == ["no job is left"]


def test_errors_of_jobs_that_did_not_succeed_are_counted(
    product: Product, make_worker: Callable[..., HandDriven]
) -> None:
    run = Run.starting_now()
    path = in_media(product.image.name)
    path.parent.mkdir(parents=True)
    path.write_text("no picture")
    jobs.resize_image.enqueue_many([{"product_id": product.pk}] * 2)
    jobs.import_products.enqueue(name="none.csv")
    make_worker().work()
    (images, two), (prices, one) = run.errors
    assert "resize_image: PIL.UnidentifiedImageError: cannot identify" in images
    assert "import_products: FileNotFoundError: " in prices
    assert (two, one) == (2, 1)


def test_the_report_ends_with_what_is_wrong(transactional_db: None) -> None:
    run = Run.starting_now()
    good = Check("ledger balances", True, "3 of 3")
    bad = Check("invoices on disk", False, "2 of 3")
    assert report(run, [good]).endswith("\n\nAll is as it should be.")
    assert report(run, [good, bad]).endswith("\n\nNot so: invoices on disk.")


def test_the_table_says_no_where_something_is_wrong() -> None:
    row = Figures(
        job_type="testproject.shop.send_invoice",
        enqueued=3,
        succeeded=2,
        failed=1,
        retries=4,
        run_ms=2.5,
    )
    lines = table([row], [Check("ledger balances", False, "2 of 3; not HG-3")])
    assert [line.split() for line in lines.splitlines()[1:]] == [
        ["testproject.shop.send_invoice", "3", "2", "1", "4", "2.5", "ms"],
        [],
        ["ledger", "balances", "NO", "2", "of", "3;", "not", "HG-3"],
    ]
