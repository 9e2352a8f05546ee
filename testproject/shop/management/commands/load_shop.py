"""``manage.py load_shop``: products with pictures, customers, orders, a price list."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from testproject.shop import background
from testproject.shop.catalogue import (
    CUSTOMERS,
    PRICE_LIST,
    Item,
    own_items,
    write_price_list,
)
from testproject.shop.checkout import place_order
from testproject.shop.images import draw_product, in_media, save
from testproject.shop.models import Customer, Product
from testproject.shop.outside import GOOD_CARD


class Command(BaseCommand):
    """Load the shop; what is there already is left as it is."""

    help = "Load the shop with products, customers and orders. Can be repeated."

    def handle(self, **options: Any) -> None:
        """Make what is missing."""
        products = [self._product(item) for item in own_items()]
        background.resize_image.enqueue_many(
            {"product_id": product.pk}
            for product in products
            if not product.thumbnail or not in_media(product.thumbnail.name).exists()
        )
        for number, (name, email) in enumerate(CUSTOMERS):
            customer, _ = Customer.objects.get_or_create(
                email=email, defaults={"name": name}
            )
            if not customer.orders.exists():
                chosen = products[number::7]
                place_order(customer, {p: 1 + p.pk % 3 for p in chosen}, GOOD_CARD)
        path = in_media(PRICE_LIST)
        if not path.exists():
            write_price_list(path)
        self.stdout.write(
            f"The shop has {len(products)} products and {len(CUSTOMERS)} customers."
        )

    def _product(self, item: Item) -> Product:
        name = f"products/{item.sku}.png"
        if not in_media(name).exists():
            made = item.made
            picture = draw_product(item.kind, made.colour, made.background)
            save(picture, in_media(name))
        defaults = {
            "name": item.name,
            "description": item.description,
            "price": item.price,
            "image": name,
        }
        return Product.objects.get_or_create(sku=item.sku, defaults=defaults)[0]
