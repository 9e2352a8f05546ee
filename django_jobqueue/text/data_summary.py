"""A few words that say which job a job is: ``order {order_id}``, filled from its
data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import Any, Final

LONGEST_TEMPLATE: Final = 200  # characters
LONGEST_VALUE: Final = 40
LONGEST: Final = 120
SHOWN: Final = 3  # values of data for which there is no template
MISSING: Final = "–"

Path = tuple[str, ...]  # the keys that lead to a value


def parts_of(template: str) -> list[tuple[str, Path | None]]:
    """The texts of a template, each with the path of the value that follows it; None at
    the end. Raises ValueError, in words that follow the option's name."""
    if len(template) > LONGEST_TEMPLATE:
        raise ValueError(f"must have at most {LONGEST_TEMPLATE} characters.")
    if not template.strip() or not template.isprintable():
        raise ValueError(f"must be a line of text, not {template!r}.")
    try:
        parsed = list(Formatter().parse(template))
    except ValueError as error:
        raise ValueError(f"cannot be read: {error}: {template!r}.") from None
    parts: list[tuple[str, Path | None]] = []
    for text, field, form, conversion in parsed:
        if field is None:
            parts.append((text, None))
            continue
        path = tuple(field.split("."))
        if form or conversion or not all(path) or "[" in field:
            raise ValueError(
                f"takes names like {{order_id}} or {{customer.name}}, not "
                f"{{{field}{'!' + conversion if conversion else ''}"
                f"{':' + form if form else ''}}}."
            )
        parts.append((text, path))
    return parts


def paths_of(template: str | None) -> set[Path]:
    """The paths of the values in a template; none if it cannot be read, as after a
    change in SQL."""
    try:
        parts = parts_of(template) if template else []
    except ValueError:
        return set()
    return {path for _, path in parts if path}


def keys_of(template: str | None) -> set[str]:
    """The keys of the data that a template needs."""
    return {path[0] for path in paths_of(template)}


def summary(template: str | None, data: Any) -> str:
    """The template filled from these data, which are masked already; without a template
    their first values."""
    try:
        parts = parts_of(template) if template else None
    except ValueError:
        parts = None
    if parts is None:
        return _cut(", ".join(_first_values(data)), LONGEST)
    filled = [text + (_value_at(data, path) if path else "") for text, path in parts]
    return _cut("".join(filled), LONGEST)


def value_text(value: Any) -> str:
    """A value of some data in a line of text."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _cut(" ".join(text.split()), LONGEST_VALUE)


def _first_values(data: Any) -> Iterator[str]:
    if not isinstance(data, Mapping):
        return
    shown = 0
    for key, value in data.items():
        if isinstance(value, dict | list) or value is None or value == "":
            continue
        yield f"{_cut(str(key), LONGEST_VALUE)} {value_text(value)}"
        shown += 1
        if shown == SHOWN:
            return


def _value_at(data: Any, path: Path) -> str:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return MISSING
        data = data[key]
    return MISSING if data is None else value_text(data)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
