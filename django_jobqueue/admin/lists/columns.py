"""Columns of lists, whose cells know what they are called.

Where a list is too narrow for a table, its rows become cards, and each cell shows its
name.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.contrib.admin import display
from django.utils.html import format_html
from django.utils.text import capfirst

from django_jobqueue.admin.parts import display as shown

Cell = Callable[[Any, Any], Any]


def column(*, description: Any) -> Callable[[Cell], Cell]:
    """A column of a list, named so; in the place of Django's ``display``."""

    def decorated(function: Cell) -> Cell:
        @wraps(function)
        def cell(model_admin: Any, row: Any) -> Any:
            value = function(model_admin, row)
            if value is None or value == "":
                return value
            return format_html(
                '<div class="jq-cell" data-label="{}">{}</div>',
                capfirst(description),
                value,
            )

        named: Cell = display(description=description)(cell)
        return named

    return decorated


def moment_cell(row: Any, at: datetime | None) -> Any:
    """A time of a row; by the clock first, where the list is of a range of time."""
    return shown.moment(at, clock_first=getattr(row, "is_of_range", False))
