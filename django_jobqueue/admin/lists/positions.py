"""Places in a list that is ordered by a key: what pages begin after."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import F, Func, Lookup, Value
from django.db.models.lookups import (
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)
from django.db.models.query import QuerySet
from django.utils import timezone

Position = tuple[Any, ...]


class Row(Func):
    """Several columns compared as one, which is one range of an index.

    The same written with AND and OR is planned worse.
    """

    function = "ROW"
    output_field = models.Field()


class Key:
    """The columns that a list is ordered by, by default newest first; together
    they are unique. Computed ones are annotations of the queryset."""

    def __init__(
        self,
        model: type[models.Model],
        names: Sequence[str],
        *,
        oldest_first: bool = False,
        computed: Mapping[str, models.Field[Any, Any]] | None = None,
    ) -> None:
        self.names = tuple(names)
        self.oldest_first = oldest_first
        annotated = computed or {}
        self._computed = tuple(annotated)
        self.fields: list[Any] = [
            annotated.get(name) or model._meta.get_field(name) for name in names
        ]

    @property
    def order(self) -> list[str]:
        """The order, as ``order_by`` takes it."""
        return self._ordered(self.oldest_first)

    @property
    def backwards(self) -> list[str]:
        """The reverse."""
        return self._ordered(not self.oldest_first)

    def readable(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The same rows, with the computed columns that ``of`` reads."""
        columns: Any = {name: F(name) for name in self._computed}
        matches: QuerySet[Any] = queryset.annotate(**columns)
        return matches

    def of(self, row: models.Model) -> Position:
        """Where this row is."""
        return tuple(getattr(row, name) for name in self.names)

    def after(self, position: Position) -> Lookup[bool]:
        """The condition for what comes after this position."""
        lookup = GreaterThan if self.oldest_first else LessThan
        return lookup(self._columns(), self._values(position))

    def not_before(self, position: Position) -> Lookup[bool]:
        """The same, and the row at this position."""
        lookup = GreaterThanOrEqual if self.oldest_first else LessThanOrEqual
        return lookup(self._columns(), self._values(position))

    def before(self, position: Position) -> Lookup[bool]:
        """The condition for what comes before this position."""
        lookup = LessThan if self.oldest_first else GreaterThan
        return lookup(self._columns(), self._values(position))

    def write(self, position: Position) -> str:
        """A position as part of an address."""
        values = [
            value.isoformat() if isinstance(value, datetime) else str(value)
            for value in position
        ]
        text = json.dumps(values, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read(self, text: str) -> Position:
        """The position that ``write`` wrote. Raises ValueError for anything else."""
        try:
            raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            values = json.loads(raw)
            if not isinstance(values, list) or not all(
                isinstance(value, str) for value in values
            ):
                raise ValueError("not a list of strings")
            position = tuple(
                field.to_python(value)
                for field, value in zip(self.fields, values, strict=True)
            )
        except (binascii.Error, ValidationError, UnicodeError) as error:
            raise ValueError(str(error)) from error
        for value in position:
            if isinstance(value, datetime) and timezone.is_naive(value):
                raise ValueError("a time without a zone")
        return position

    def _ordered(self, oldest_first: bool) -> list[str]:
        return [name if oldest_first else f"-{name}" for name in self.names]

    def _columns(self) -> Row:
        return Row(*(F(name) for name in self.names))

    def _values(self, position: Position) -> Row:
        return Row(
            *(
                Value(value, output_field=type(field)())
                for field, value in zip(self.fields, position, strict=True)
            )
        )
