"""A form field for each parameter of a handler, from its signature and annotations.

A field comes to a value that JSON has: a date, a Decimal or a UUID to its text, since
that is what the handler will get.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from django_jobqueue.admin.parts.display import visible
from django_jobqueue.domain.registry import Declaration
from django_jobqueue.text.redaction import MASK, mask_data

MISSING: Final = inspect.Parameter.empty


class JsonField(forms.CharField):
    """Any JSON value, written as such."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
        super().__init__(**{"widget": widget, "help_text": _("JSON"), **options})

    def clean(self, value: Any) -> Any:
        """The value; None for an empty field that may be empty."""
        text = super().clean(value)
        if not text:
            return None
        try:
            return json.loads(text, parse_constant=_refuse)
        except (RecursionError, ValueError) as error:
            raise ValidationError(_("This is not JSON.")) from error


class Argument(NamedTuple):
    """A parameter of a handler, and the field for it."""

    name: str
    field: forms.Field
    default: Any = MISSING
    to_json: Callable[[Any], Any] | None = None  # of what the field comes to

    def is_left_out(self, value: Any) -> bool:
        """True if the call does without it, as calls in the code do."""
        if self.default is MISSING:
            return False
        is_same = type(value) is type(self.default) and value == self.default
        return is_same or (value is None and self.default is not None)

    def value_of(self, cleaned: Any) -> Any:
        """The value for JSON."""
        if cleaned is None or self.to_json is None:
            return cleaned
        return self.to_json(cleaned)


def arguments_of(declaration: Declaration) -> Iterator[Argument]:
    """The parameters in their order, without those that the worker gives."""
    hints = _hints(declaration.function)
    sensitive = declaration.policy.sensitive
    for name, parameter in inspect.signature(declaration.function).parameters.items():
        if name in declaration.parameters.names:
            hint = hints.get(name, Any)
            yield _argument(name, hint, parameter.default, sensitive)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # names that are imported for type checkers only, and the like
        return {}


def _argument(
    name: str, hint: Any, default: Any, sensitive: frozenset[str]
) -> Argument:
    value_type, takes_none = _without_none(hint)
    has_default = default is not MISSING
    make, to_json = _maker(value_type, takes_none)
    default = default.value if isinstance(default, Enum) else default
    field = make(
        label=visible(name),
        required=not has_default and not takes_none and value_type is not bool,
        **_initial(default, value_type, make),
    )
    is_secret = mask_data({name: ""}, sensitive)[name] == MASK
    if is_secret and isinstance(field, forms.CharField):
        field.initial = None
        field.widget = forms.PasswordInput(attrs={"autocomplete": "off"})
        field.help_text = _("A secret: it is never shown again.")
    return Argument(name, field, default, to_json)


def _without_none(hint: Any) -> tuple[Any, bool]:
    """The type without "or None", and whether it had that."""
    if get_origin(hint) not in (Union, UnionType):
        return hint, hint is NoneType
    others = [one for one in get_args(hint) if one is not NoneType]
    takes_none = len(others) < len(get_args(hint))
    return (others[0] if len(others) == 1 else Any), takes_none


def _maker(
    value_type: Any, takes_none: bool
) -> tuple[Callable[..., forms.Field], Callable[[Any], Any] | None]:
    """The functions that make the field, and JSON of its value."""
    if value_type is bool:
        return (forms.NullBooleanField if takes_none else forms.BooleanField), None
    if value_type is str:
        return _text(takes_none), None
    if get_origin(value_type) is Literal:
        return _choices([(str(one), one) for one in get_args(value_type)]), None
    if inspect.isclass(value_type) and issubclass(value_type, Enum):
        return _choices([(one.name, one.value) for one in value_type]), None
    simple = _SIMPLE.get(value_type)
    return simple if simple else (JsonField, None)


def _text(takes_none: bool) -> Callable[..., forms.Field]:
    def make(**options: Any) -> forms.Field:
        empty = None if takes_none else ""
        return forms.CharField(strip=False, empty_value=empty, **options)

    return make


def _choices(named: list[tuple[str, Any]]) -> Callable[..., forms.Field]:
    """Values go by their numbers, since their texts may be the same: 1 and "1"."""

    def make(*, initial: Any = None, **options: Any) -> forms.Field:
        values = [value for _name, value in named]
        labels = [(str(n), visible(name)) for n, (name, _value) in enumerate(named)]
        chosen = str(values.index(initial)) if initial in values else None
        return forms.TypedChoiceField(
            choices=labels if options["required"] and chosen else [("", "–"), *labels],
            coerce=lambda number: values[int(number)],
            empty_value=None,
            initial=chosen,
            **options,
        )

    return make


def _moment(**options: Any) -> forms.Field:
    widget = forms.DateTimeInput(
        attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"
    )
    return forms.DateTimeField(widget=widget, **options)


def _day(**options: Any) -> forms.Field:
    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")
    return forms.DateField(widget=widget, **options)


_SIMPLE: Final[dict[Any, tuple[Any, Callable[[Any], Any] | None]]] = {
    int: (forms.IntegerField, None),
    float: (forms.FloatField, None),
    Decimal: (forms.DecimalField, str),
    datetime: (_moment, datetime.isoformat),
    date: (_day, date.isoformat),
    UUID: (forms.UUIDField, str),
}


def _initial(default: Any, value_type: Any, make: Any) -> dict[str, Any]:
    """The initial value; None where JSON has no value for it."""
    if default is MISSING or default is None:
        return {}
    if make is not JsonField:
        return {"initial": default}
    try:
        return {"initial": json.dumps(default, ensure_ascii=False)}
    except (TypeError, ValueError):
        return {"help_text": _("JSON. Empty: the handler's default.")}


def _refuse(constant: str) -> None:
    raise ValueError(constant)
