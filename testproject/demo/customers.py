"""People who buy in the shop, always the same ones in the same order."""

from __future__ import annotations

from random import Random
from typing import Final

from testproject.demo.browser import Browser
from testproject.shop.catalogue import CUSTOMERS
from testproject.shop.outside import DECLINED_CARD, GOOD_CARD

DECLINED_EVERY: Final = 8  # orders


class Customers:
    """Places orders through the pages of the shop."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._random = Random(20)
        self._placed = 0

    def order(self, *, cards_may_fail: bool) -> int:
        """Place an order; returns the key in its page's address. Raises Refused."""
        self._placed += 1
        fails = cards_may_fail and self._placed % DECLINED_EVERY == 0
        name, email = CUSTOMERS[self._placed % len(CUSTOMERS)]
        products = self._random.sample(self._browser.products(), 3)
        form = {
            "name": name,
            "email": email,
            "card_token": DECLINED_CARD if fails else GOOD_CARD,
            **{f"quantity_{pk}": self._random.randint(1, 3) for pk in products},
        }
        address = self._browser.submit("/checkout/", "/checkout/", form)
        return int(address.rstrip("/").rpartition("/")[2])

    def import_supplies(self) -> None:
        """Press the button that imports the price list."""
        self._browser.submit("/supplies/", "/supplies/import/", {})

    def refresh_prices(self) -> None:
        """Press the button that refreshes prices."""
        self._browser.submit("/supplies/", "/supplies/refresh/", {})
