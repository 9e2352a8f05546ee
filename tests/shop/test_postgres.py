"""The address of a database, as the demo and the tests are told it."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from testproject.postgres import database_settings

PARTS = ("USER", "PASSWORD", "HOST", "PORT", "NAME", "OPTIONS")


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        (
            "postgresql://ann:p%40ss@db.example:5433/shop?sslmode=require",
            ("ann", "p@ss", "db.example", "5433", "shop", {"sslmode": "require"}),
        ),
        (
            "postgresql://postgres@%2Ftmp%2FSocket/postgres",
            ("postgres", "", "/tmp/Socket", "", "postgres", {}),
        ),
        ("postgres://ann@[::1]:5432/x", ("ann", "", "::1", "5432", "x", {})),
        ("postgres://", ("", "", "", "", "postgres", {})),
    ],
)
def test_an_address_becomes_settings(url: str, parts: tuple[object, ...]) -> None:
    settings = database_settings(url)
    assert tuple(settings[part] for part in PARTS) == parts


@pytest.mark.parametrize("url", ["sqlite:///shop.db", "shop", ""])
def test_an_address_of_another_database_is_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="must be like postgresql://"):
        database_settings(url)
