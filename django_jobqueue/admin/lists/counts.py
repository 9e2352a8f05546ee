"""Counts that are never waited for: exact, "10,000+", or of a table an estimate."""

from __future__ import annotations

import json
from typing import Any, Final

from django.db import models
from django.db.models.query import QuerySet

from django_jobqueue.store.connection import DjangoDatabase
from django_jobqueue.store.time_budget import in_time
from django_jobqueue.text import numbers

CAP: Final = 10_000  # counted no further
BUDGET: Final = 120  # milliseconds; a rare value without an index takes seconds


class About(int):
    """A number of rows that is not exact; as text it says so."""

    label: str

    def __new__(cls, value: int, label: str) -> About:
        """Remember the text beside the number."""
        about = super().__new__(cls, value)
        about.label = label
        return about

    def __str__(self) -> str:
        return self.label


def count(
    queryset: QuerySet[Any],
    *,
    known: int = 0,
    cap: int = CAP,
    budget: int = BUDGET,
) -> int:
    """How many rows there are: an int if exact, else ``About`` so many.

    At most ``cap + 1`` rows are counted, for at most ``budget`` milliseconds. Beyond
    either, a whole table has as many as the planner expects. Of a condition the planner
    knows too little: it can be wrong a hundredfold. So there are more than the cap, or
    more than ``known``, which is how many the caller has seen of them.
    """
    plain = queryset.order_by()
    counted = _counted(plain[: cap + 1], budget)
    if counted is not None and counted <= cap:
        return counted
    if not plain.query.where:
        estimated = _estimated(plain)
        if counted is None or estimated >= 2 * cap:
            return About(estimated, numbers.about(estimated))
    least = known if counted is None else cap
    return About(least + 1, numbers.at_least(least + 1, least))


def _counted(queryset: QuerySet[Any], budget: int) -> int | None:
    """The exact number of rows, or None if it took too long."""
    db = DjangoDatabase(queryset.db)
    rows = in_time(db, budget, lambda: [(queryset.count(),)])
    return None if rows is None else int(rows[0][0])


def _estimated(queryset: QuerySet[models.Model]) -> int:
    """How many rows the planner expects."""
    (plan,) = json.loads(queryset.explain(format="json"))
    return int(plan["Plan"]["Plan Rows"])
