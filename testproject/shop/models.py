"""What the shop keeps."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.urls import reverse


class Product(models.Model):
    """Something to buy."""

    sku = models.CharField("SKU", max_length=20, unique=True)
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    image = models.FileField(upload_to="products", blank=True)
    thumbnail = models.FileField(upload_to="thumbnails", blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class Customer(models.Model):
    """Somebody who buys."""

    name = models.CharField(max_length=100)
    email = models.EmailField(unique=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    """What a customer bought at one time."""

    customer = models.ForeignKey(
        Customer, on_delete=models.PROTECT, related_name="orders"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.number

    def get_absolute_url(self) -> str:
        """The page that tells what has happened."""
        return reverse("shop:order", args=[self.pk])

    @property
    def number(self) -> str:
        """How people call it."""
        return f"HG-{self.pk:05}"

    @property
    def total(self) -> Decimal:
        """What it costs."""
        return sum((line.amount for line in self.lines.all()), Decimal("0.00"))

    @property
    def payment(self) -> Payment | None:
        """The last payment."""
        return next(iter(list(self.payments.all())[-1:]), None)

    @property
    def receipt(self) -> WebhookReceipt | None:
        """The last that the partner received of it."""
        return next(iter(list(self.receipts.all())[-1:]), None)

    @property
    def is_settled(self) -> bool:
        """Whether everything that follows an order has happened to it."""
        invoice = getattr(self, "invoice", None)
        mailed = invoice is not None and invoice.sent_at is not None
        told = self.receipt is not None and self.receipt.answer == 200
        return bool(mailed and told and self.payment and self.ledger_entries.all())


class OrderLine(models.Model):
    """A product in an order, at the price of that moment."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    product = models.ForeignKey(Product, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField()
    unit_price = models.DecimalField(max_digits=8, decimal_places=2)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.quantity} × {self.product}"

    @property
    def amount(self) -> Decimal:
        """Quantity times price."""
        return self.quantity * self.unit_price


class LedgerEntry(models.Model):
    """One side of a posting; the sides of an order's posting balance."""

    class Account(models.TextChoices):
        """Where amounts are posted."""

        RECEIVABLE = "receivable"
        REVENUE = "revenue"

    order = models.ForeignKey(
        Order, on_delete=models.PROTECT, related_name="ledger_entries"
    )
    account = models.CharField(max_length=20, choices=Account.choices)
    debit = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    credit = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    posted_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.UniqueConstraint(
                fields=["order", "account"], name="shop_ledger_posted_once"
            ),
            models.CheckConstraint(
                condition=Q(debit=0) | Q(credit=0), name="shop_ledger_one_side"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.order} {self.account} {self.debit - self.credit}"


class Payment(models.Model):
    """An attempt to take a customer's money.

    No constraint could forbid to charge a card twice when a worker dies between the
    provider's answer and this row; that the job type is at most once does.
    """

    class State(models.TextChoices):
        """What the provider answered."""

        CAPTURED = "captured"
        DECLINED = "declined"

    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="payments")
    state = models.CharField(max_length=10, choices=State.choices)
    amount = models.DecimalField(max_digits=10, decimal_places=2)
    reference = models.CharField("provider's reference", max_length=50, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.order} {self.state} {self.amount}"


class Invoice(models.Model):
    """The invoice of an order, as a file."""

    order = models.OneToOneField(
        Order, on_delete=models.PROTECT, related_name="invoice"
    )
    file = models.FileField(upload_to="invoices")
    rendered_at = models.DateTimeField(auto_now=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"Invoice {self.order}"


class WebhookReceipt(models.Model):
    """What the partner's endpoint, which is part of this shop, received."""

    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="receipts")
    delivery = models.UUIDField(help_text="Id of the job that delivers it.")
    event = models.CharField(max_length=50)
    answer = models.PositiveSmallIntegerField(help_text="HTTP status.")
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.event} {self.order}: {self.answer}"
