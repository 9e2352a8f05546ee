"""What a customer fills in."""

from __future__ import annotations

from typing import Any

from django import forms

from testproject.shop.models import Customer, Product
from testproject.shop.outside import DECLINED_CARD, GOOD_CARD

CARDS = [
    (GOOD_CARD, "Visa ending in 4242"),
    (DECLINED_CARD, "Visa ending in 0002 (is declined)"),
]
MOST = 20  # of one product in an order


class CheckoutForm(forms.Form):
    """Who buys, with which card, and how many of each product."""

    name = forms.CharField(max_length=100)
    email = forms.EmailField()
    card_token = forms.ChoiceField(label="Card", choices=CARDS)

    def __init__(self, *args: Any, products: list[Product], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.products = products
        for product in products:
            self.fields[self._key(product)] = forms.IntegerField(
                label=product.name, required=False, min_value=0, max_value=MOST
            )

    def rows(self) -> list[tuple[Product, forms.BoundField]]:
        """Each product with the field of its quantity."""
        return [(product, self[self._key(product)]) for product in self.products]

    def clean(self) -> dict[str, Any]:
        """Something must be bought."""
        cleaned = super().clean() or self.cleaned_data
        if not self.errors and not self.quantities():
            raise forms.ValidationError("Choose at least one product.")
        return cleaned

    def quantities(self) -> dict[Product, int]:
        """What is bought, once the form is valid."""
        chosen = {p: self.cleaned_data.get(self._key(p)) for p in self.products}
        return {product: quantity for product, quantity in chosen.items() if quantity}

    def customer(self) -> Customer:
        """Who buys, known by the address."""
        data = self.cleaned_data
        return Customer.objects.get_or_create(
            email=data["email"], defaults={"name": data["name"]}
        )[0]

    @staticmethod
    def _key(product: Product) -> str:
        return f"quantity_{product.pk}"
