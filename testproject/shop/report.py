"""Whether a run of the demo came out as it should, by its rows and files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, TypeVar

from django.conf import settings
from PIL import Image

from testproject.shop import background
from testproject.shop.catalogue import PRICE_LIST, own_items, read_price_list
from testproject.shop.images import THUMBNAIL, in_media
from testproject.shop.mails import Mail, read_mails
from testproject.shop.models import Order, Payment, Product
from testproject.shop.outside import BUSY_EVERY, price_of
from testproject.shop.run import Figures, Run, figures

T = TypeVar("T")
OF_EACH_ORDER: Final = (
    "capture_payment",
    "post_ledger",
    "render_invoice",
    "send_invoice",
    "deliver_webhook",
)
CLOCKS_DIFFER: Final = timedelta(minutes=1)  # mails are dated by this host
SHOWN: Final = 3  # culprits that a line names; errors


@dataclass(frozen=True, slots=True)
class Check:
    """Something that must hold, and what was found."""

    name: str
    holds: bool
    found: str


def checks(run: Run, placed: Sequence[int]) -> list[Check]:
    """Look at everything; ``placed`` are the orders that customers were told of."""
    orders = run.orders
    known = {order.pk for order in orders}
    return [
        _all("orders placed are there", placed, known.__contains__),
        _no_job_is_left(run),
        _every_job_succeeded(run),
        _all("orders have their five jobs", orders, _has_its_jobs(run)),
        _all("payments captured once", orders, _is_paid_once),
        _all("ledger balances", orders, _balances),
        _all("invoices on disk", orders, _has_invoice),
        _all("invoices mailed once", orders, _is_mailed_once(run)),
        _all("webhooks delivered", orders, _is_announced(run)),
        _all("pictures resized", [i.sku for i in own_items()], _has_thumbnail),
        *_price_list(run),
    ]


def report(run: Run, found: Sequence[Check]) -> str:
    """The whole report for a terminal."""
    parts = [table(figures(run), found)]
    if errors := run.errors[:SHOWN]:
        parts.append("\n".join(f"{count} × {error}" for error, count in errors))
    wrong = [check.name for check in found if not check.holds]
    parts.append(f"Not so: {'; '.join(wrong)}." if wrong else "All is as it should be.")
    return "\n\n".join(parts)


def table(rows: Iterable[Figures], found: Iterable[Check]) -> str:
    """What became of the jobs of each type, and of what must hold."""
    line = "{:<34}{:>9}{:>10}{:>7}{:>8}{:>10}".format
    lines = [line("job type", "enqueued", "succeeded", "failed", "retries", "p50 run")]
    for row in rows:
        run = "" if row.run_ms is None else f"{row.run_ms:g} ms"
        counts = (row.enqueued, row.succeeded, row.failed, row.retries)
        lines.append(line(row.job_type, *counts, run))
    lines.append("")
    for check in found:
        answer = "yes" if check.holds else "NO"
        lines.append(f"{check.name:<34}{answer:<5}{check.found}")
    return "\n".join(lines)


def _all(name: str, things: Sequence[T], holds: Callable[[T], bool]) -> Check:
    """That something holds for each of these, of which there must be one."""
    wrong = [str(thing) for thing in things if not holds(thing)]
    found = f"{len(things) - len(wrong)} of {len(things)}"
    if wrong:
        more = ", …" if len(wrong) > SHOWN else ""
        found += f"; not {', '.join(wrong[:SHOWN])}{more}"
    return Check(name, bool(things) and not wrong, found)


def _no_job_is_left(run: Run) -> Check:
    left = run.queued.count()
    return Check("no job is left", left == 0, f"{left} left")


def _every_job_succeeded(run: Run) -> Check:
    ends = Counter(run.archived.values_list("status", flat=True))
    found = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
    return Check(
        "every ended job succeeded", list(ends) == ["succeeded"], found or "no jobs"
    )


def _has_its_jobs(run: Run) -> Callable[[Order], bool]:
    names = [background.job_type(name) for name in OF_EACH_ORDER]
    found = Counter(
        run.archived.filter(job_type__in=names, status="succeeded").values_list(
            "job_type", "data__order_id"
        )
    )
    return lambda order: all(found[name, order.pk] == 1 for name in names)


def _is_paid_once(order: Order) -> bool:
    taken = [p for p in order.payments.all() if p.state == Payment.State.CAPTURED]
    return (
        len(taken) == 1
        and taken[0].amount == order.total
        and taken[0].reference.startswith("ch_")
    )


def _balances(order: Order) -> bool:
    entries = order.ledger_entries.all()
    debit = sum(entry.debit for entry in entries)
    credit = sum(entry.credit for entry in entries)
    return len(entries) == 2 and debit == credit == order.total


def _has_invoice(order: Order) -> bool:
    text = _invoice_text(order)
    return order.number in text and f"€ {order.total}" in text


def _invoice_text(order: Order) -> str:
    invoice = getattr(order, "invoice", None)
    path = in_media(invoice.file.name) if invoice else None
    return path.read_text(encoding="utf-8") if path and path.exists() else ""


def _is_mailed_once(run: Run) -> Callable[[Order], bool]:
    mails: dict[str, list[Mail]] = {}
    for mail in read_mails(Path(settings.MAIL_FOLDER)):
        if mail.sent_at > run.since - CLOCKS_DIFFER:
            mails.setdefault(mail.order, []).append(mail)

    def holds(order: Order) -> bool:
        sent = mails.get(order.number, [])
        return (
            len(sent) == 1
            and sent[0].to == order.customer.email
            and sent[0].attachments == (_invoice_text(order),)
        )

    return holds


def _is_announced(run: Run) -> Callable[[Order], bool]:
    """The partner took it at the last attempt; every third order at the second."""
    rows = run.archived.filter(job_type=background.job_type("deliver_webhook"))
    attempts = {
        order: (id, attempts)
        for order, id, attempts in rows.values_list("data__order_id", "id", "attempts")
    }

    def holds(order: Order) -> bool:
        refused = [503] if order.pk % BUSY_EVERY == 0 else []
        receipts = order.receipts.all()
        job, count = attempts.get(order.pk, (None, 0))
        return (
            [receipt.answer for receipt in receipts] == [*refused, 200]
            and {receipt.delivery for receipt in receipts} == {job}
            and count == len(receipts)
        )

    return holds


def _has_thumbnail(sku: str) -> bool:
    product = Product.objects.filter(sku=sku).first()
    if product is None or not product.thumbnail:
        return False
    path = in_media(product.thumbnail.name)
    if not path.exists():
        return False
    with Image.open(path) as image:
        return image.size == THUMBNAIL


def _price_list(run: Run) -> list[Check]:
    """The price list arrived, one job a row; some prices were then asked for anew."""
    rows = list(read_price_list(in_media(PRICE_LIST)))
    done = run.archived.filter(status="succeeded")
    imports = done.filter(job_type=background.job_type("import_product"))
    imported = Counter(imports.values_list("data__row__sku", flat=True))
    refreshed = done.filter(job_type=background.job_type("refresh_prices"))
    results = refreshed.values_list("result", flat=True)
    fresh = {sku: Decimal(price) for result in results for sku, price in result.items()}
    products = {p.sku: p for p in Product.objects.filter(image="")}

    def arrived(row: dict[str, str]) -> bool:
        product = products.get(row["sku"])
        price = fresh.get(row["sku"], Decimal(row["price"]))
        return (
            imported[row["sku"]] == 1
            and product is not None
            and (product.name, product.price) == (row["name"], price)
        )

    return [
        _all("rows of the price list imported", rows, arrived),
        _all("prices refreshed", list(fresh), lambda sku: fresh[sku] == price_of(sku)),
    ]
