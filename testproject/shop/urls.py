"""The addresses of the shop, and of the other parties."""

from __future__ import annotations

from django.urls import path

from testproject.shop import outside, views

app_name = "shop"
urlpatterns = [
    path("", views.home, name="home"),
    path("checkout/", views.checkout, name="checkout"),
    path("orders/<int:pk>/", views.order, name="order"),
    path("supplies/", views.supplies, name="supplies"),
    path("supplies/import/", views.import_supplies, name="import-supplies"),
    path("supplies/refresh/", views.refresh, name="refresh-prices"),
    path("supplier/<slug:sku>/", outside.supplier_price, name="supplier-price"),
    path("partner/webhook/", outside.partner_webhook, name="partner-webhook"),
]
