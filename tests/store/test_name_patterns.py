"""Patterns of names mean the same in Python and in SQL."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from django.db import connection

from django_jobqueue.domain.name_patterns import fits
from django_jobqueue.search.selection import Selection, Table, Term
from django_jobqueue.store.selection import condition

PARTS = ("a", "A", "*", "%", "_", "\\", "?", "[a]", ".", "\n")
NAMES = [name for name in map("".join, product(PARTS, repeat=2)) if "*" not in name]
PATTERNS = [*map("".join, product(PARTS, repeat=2)), "a*%", "*a*", "**", "a", ""]

pytestmark = pytest.mark.django_db


def test_each_pattern_fits_the_same_names() -> None:
    values: list[Any] = []

    def placeholder(value: Any) -> str:
        values.append(value)
        return "%s"

    selected = {}
    with connection.cursor() as cursor:
        for pattern in PATTERNS:
            values.clear()
            only = Selection(Table.QUEUED, (Term("queues", (pattern, "none")),))
            where = condition(only, placeholder)
            cursor.execute(
                "SELECT queue FROM unnest(%s::text[]) AS jobqueue_queuedjob (queue)"
                f" WHERE {where}",
                [NAMES, *values],
            )
            selected[pattern] = {name for (name,) in cursor.fetchall()}
    expected = {
        pattern: {name for name in NAMES if fits(name, [pattern, "none"])}
        for pattern in PATTERNS
    }
    assert selected == expected
    assert selected["a*"] == {name for name in NAMES if name.startswith("a")}


def test_a_name_for_every_name_needs_a_pattern_for_every_name() -> None:
    assert fits("*", [])
    assert fits("*", ["a", "*"])
    assert not fits("*", ["a*"])
    assert fits(None, ["a"])
