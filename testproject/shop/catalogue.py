"""The shop's own products, its customers, and the supplier's price list as a CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from decimal import Decimal
from itertools import islice, product
from pathlib import Path
from typing import Final, NamedTuple

from testproject.shop.outside import price_of

PRICE_LIST: Final = "imports/price-list.csv"
PRICE_LIST_ROWS: Final = 3_000


class Made(NamedTuple):
    """A colour that things are made in."""

    name: str
    colour: str
    background: str


MADE: Final = (
    Made("Sea", "#457b9d", "#e3edf2"),
    Made("Clay", "#c8694b", "#f6e7dd"),
    Made("Moss", "#6a8d5f", "#e9efe2"),
)
KINDS: Final = {
    "mug": ("Mug", "14.50", "Stoneware, 350 ml, glazed by hand."),
    "bowl": ("Salad bowl", "32.00", "For six people; 28 cm across."),
    "lamp": ("Table lamp", "79.00", "Linen shade, dimmer in the cord."),
    "vase": ("Vase", "38.50", "Thrown on the wheel, for five stems."),
    "notebook": ("Notebook", "9.90", "A5, 144 dotted pages, sewn."),
    "candle": ("Candle", "12.00", "Rapeseed wax; burns for 40 hours."),
    "board": ("Bread board", "26.00", "Ash, oiled, 42 by 24 cm."),
    "basket": ("Basket", "44.00", "Willow from the river, with a handle."),
}
CUSTOMERS: Final = (
    ("Ada Lindqvist", "ada@example.com"),
    ("Bruno Carvalho", "bruno@example.com"),
    ("Chiara Conti", "chiara@example.com"),
    ("David Okafor", "david@example.com"),
    ("Elif Demir", "elif@example.com"),
    ("Freya Nilsen", "freya@example.com"),
)
WOODS: Final = ("Oak", "Ash", "Beech", "Walnut", "Cherry", "Maple", "Elm", "Birch")
THINGS: Final = ("hook", "shelf", "tray", "spoon", "stool", "frame", "box", "peg")


class Item(NamedTuple):
    """A product of the shop's own, as the loader makes it."""

    sku: str
    name: str
    description: str
    price: Decimal
    kind: str
    made: Made


def own_items() -> Iterator[Item]:
    """The products of the shop's own."""
    for number, (kind, made) in enumerate(product(KINDS, MADE), start=1):
        name, price, description = KINDS[kind]
        yield Item(
            sku=f"HG-{number:03}",
            name=f"{name}, {made.name.lower()}",
            description=description,
            price=Decimal(price),
            kind=kind,
            made=made,
        )


def write_price_list(path: Path, rows: int = PRICE_LIST_ROWS) -> None:
    """Write the supplier's price list of last week."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "name", "description", "price"])
        writer.writerows(islice(_supplied(), rows))


def read_price_list(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a price list, by column."""
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _supplied() -> Iterator[tuple[str, str, str, str]]:
    sizes = range(10, 70)
    for number, (wood, thing, size) in enumerate(product(WOODS, THINGS, sizes), 1):
        sku = f"SUP-{number:05}"
        price = (price_of(sku) * Decimal("0.95")).quantize(Decimal("0.01"))
        yield sku, f"{wood} {thing}, {size} cm", f"Solid {wood.lower()}.", str(price)
