"""Reads JSON of strangers: one meaning for each text, and a bounded depth."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from django_jobqueue.text.json_reading import repeated_key

DEEPEST: Final = 100


def parse(body: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises ValueError, which says what is wrong
    with it: equal keys, numbers that are none, texts that no database takes."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise ValueError("The body is not UTF-8.") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError(f"The body is nested deeper than {DEEPEST}.") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"The body is not JSON: {error}.") from None
    # Few texts need to be walked through.
    if "\\u" in text or text.count("[") + text.count("{") > DEEPEST:
        _check(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs) and (twice := repeated_key(pairs)) is not None:
        raise ValueError(f"The key {twice[:100]!r} stands twice in an object.")
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number.")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is a greater number than can be stored.")
    return number


def _check(value: Any) -> None:
    """Raises ValueError for depth, and for NUL and halves of characters in texts."""
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"The body is nested deeper than {DEEPEST}.")
        for one in layer:
            for text in _texts(one):
                check_text(text)
        layer = [
            item
            for one in layer
            for item in _items(one)
            if isinstance(item, dict | list)
        ]


def check_text(text: str) -> str:
    """The same text. Raises ValueError for what no text of PostgreSQL has."""
    if "\x00" in text:
        raise ValueError("A text has the character NUL.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("A text has half of a surrogate pair.") from None
    return text


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
    yield from (item for item in _items(value) if isinstance(item, str))
