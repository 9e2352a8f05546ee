"""The shop in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from testproject.shop.models import (
    Customer,
    Invoice,
    LedgerEntry,
    Order,
    OrderLine,
    Payment,
    Product,
    WebhookReceipt,
)


@admin.register(Product)
class ProductAdmin(admin.ModelAdmin):
    """Products."""

    list_display = ["sku", "name", "price", "thumbnail"]
    search_fields = ["sku", "name"]


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    """Customers."""

    list_display = ["name", "email"]
    search_fields = ["name", "email"]


class OrderLineInline(admin.TabularInline):
    """What was bought."""

    model = OrderLine
    extra = 0
    raw_id_fields = ["product"]


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    """Orders with their lines."""

    list_display = ["number", "customer", "total", "created_at"]
    list_select_related = ["customer"]
    date_hierarchy = "created_at"
    inlines = [OrderLineInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Order]:
        """Orders with their lines, for the totals."""
        return super().get_queryset(request).prefetch_related("lines")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(admin.ModelAdmin):
    """The ledger."""

    list_display = ["order", "account", "debit", "credit", "posted_at"]
    list_filter = ["account"]


@admin.register(Payment)
class PaymentAdmin(admin.ModelAdmin):
    """Payments."""

    list_display = ["order", "state", "amount", "reference", "created_at"]
    list_filter = ["state"]


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    """Invoices."""

    list_display = ["order", "file", "rendered_at", "sent_at"]


@admin.register(WebhookReceipt)
class WebhookReceiptAdmin(admin.ModelAdmin):
    """What the partner received."""

    list_display = ["order", "event", "answer", "delivery", "received_at"]
    list_filter = ["answer"]
