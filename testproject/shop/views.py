"""The pages of the shop."""

from __future__ import annotations

from datetime import timedelta

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from testproject.shop import background
from testproject.shop.catalogue import PRICE_LIST
from testproject.shop.checkout import place_order
from testproject.shop.forms import CheckoutForm
from testproject.shop.models import Order, Product

RECENT = 8  # orders on the first page
REFRESHED = 12  # products whose prices are asked for at a time
WATCHED_FOR = timedelta(minutes=5)  # after this an order's page is not loaded again


def own_products() -> QuerySet[Product]:
    """What is sold in this shop; the supplier's goods have no picture."""
    return Product.objects.exclude(image="")


def supplied_products() -> QuerySet[Product]:
    """What the supplier offers."""
    return Product.objects.filter(image="").order_by("sku")


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """The products and the last orders."""
    orders = Order.objects.select_related("customer", "invoice").prefetch_related(
        "lines", "payments", "ledger_entries", "receipts"
    )
    context = {"products": own_products(), "orders": orders[:RECENT]}
    return render(request, "shop/home.html", context)


@require_http_methods(["GET", "POST"])
def checkout(request: HttpRequest) -> HttpResponse:
    """A form to buy; its POST places the order."""
    products = list(own_products())
    chosen = {f"quantity_{pk}": 1 for pk in request.GET.getlist("product")}
    form = CheckoutForm(request.POST or None, products=products, initial=chosen)
    if request.method == "POST" and form.is_valid():
        quantities = form.quantities()
        token = form.cleaned_data["card_token"]
        order = place_order(form.customer(), quantities, token)
        messages.success(request, f"Thank you. Your order is {order.number}.")
        return redirect(order)
    return render(request, "shop/checkout.html", {"form": form})


@require_GET
def order(request: HttpRequest, pk: int) -> HttpResponse:
    """What has happened to an order."""
    found = get_object_or_404(
        Order.objects.select_related("customer", "invoice").prefetch_related(
            "lines__product", "payments", "ledger_entries", "receipts"
        ),
        pk=pk,
    )
    is_new = timezone.now() - found.created_at < WATCHED_FOR
    context = {"order": found, "is_waiting": is_new and not found.is_settled}
    return render(request, "shop/order.html", context)


@require_GET
def supplies(request: HttpRequest) -> HttpResponse:
    """The supplier's goods, and what can be done with them."""
    page = Paginator(supplied_products(), 25).get_page(request.GET.get("page"))
    return render(request, "shop/supplies.html", {"page": page})


@require_POST
def import_supplies(request: HttpRequest) -> HttpResponse:
    """Enqueue the import of the supplier's price list."""
    background.import_products.enqueue(name=PRICE_LIST)
    messages.success(request, "The price list is being imported.")
    return redirect("shop:supplies")


@require_POST
def refresh(request: HttpRequest) -> HttpResponse:
    """Enqueue that the first prices are asked for anew."""
    skus = list(supplied_products().values_list("sku", flat=True)[:REFRESHED])
    background.refresh_prices.enqueue(skus=skus)
    messages.success(request, f"{len(skus)} prices are being refreshed.")
    return redirect("shop:supplies")
