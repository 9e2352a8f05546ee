"""A value that says who somebody is, such as an e-mail address or a customer number:
how texts and JSON spell it, and what they are without it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cached_property
from typing import Any, Final
from unicodedata import normalize

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _

from django_jobqueue.contrib.privacy.spellings import pattern_in_json, pattern_of
from django_jobqueue.domain.states import Holds

ERASED: Final = "[erased]"
SHORTEST: Final = 4  # characters of a value without a key: shorter ones are everywhere
LONGEST: Final = 500
LONGEST_KEY: Final = 200

# As a search has it: 0049170 is a text, and no number.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18})?", re.ASCII)
# A word may begin after the escape of a line feed, or of a character of a URL.
_ESCAPED: Final = r"(?<=\\[abfnrtv])|(?<=%[0-9A-Fa-f]{2})"
_IS_NUMBER: Final = "\0"  # begins what stands for a number: no text of jsonb has it
_NUMBER_TEXT: Final = re.compile(r'"\\u0000([^"]*)"')

Path = tuple[str, ...]


class ErasureAct(TextChoices):
    """The treatment of rows that hold a personal value."""

    ERASE = "erase", _("erase the values")
    DELETE = "delete", _("delete the rows")


class PersonalValue:
    """A value, and the key that it stands under, if it is to be erased there alone.

    Texts are compared without regard to case. A number is a whole value of data, as a
    number or as a text; any other value may also be a part of a longer text. A part
    begins and ends where a word does: "anna@example.com" is no part of
    "joanna@example.com".
    """

    def __init__(self, value: str, key: str = "") -> None:
        self.value = value
        self.key = key
        self._path: Path = tuple(key.split(".")) if key else ()
        is_number = len(value) < 40 and _NUMBER.fullmatch(value)
        self._number = Decimal(value) if is_number else None

    @cached_property
    def pattern(self) -> str:
        """A row that holds the value matches this without regard to the case of ASCII,
        as text or as JSON."""
        choices = [pattern_in_json(self.value)]
        if self._number is not None:
            choices.append(re.escape(format(self._number.normalize(), "f")))
        return "|".join(choices)

    def erased(self, holds: Holds, content: str) -> str:
        """The content of a column, as text or JSON text, without the value."""
        if holds is Holds.TEXT:
            return content if self._path else self.without(content)
        if holds is Holds.TEXTS:
            return content if self._path else _changed(content, self._texts)
        if holds is Holds.SELECTION:
            return _changed(content, self._selection)
        return _changed(content, lambda data: self._data(data, ()))

    def without(self, text: str) -> str:
        """A free text without the value, whatever its key."""
        return self._pattern.sub(ERASED, text)

    def _data(self, data: Any, path: Path) -> Any:
        if isinstance(data, dict):
            return self._dict(data, path)
        if isinstance(data, list):
            return [self._data(item, path) for item in data]
        if not isinstance(data, str) or not self._is_meant(path):
            return data
        if data.startswith(_IS_NUMBER):
            return ERASED if self._is_number(data[1:]) else data
        return self._scalar(data)

    def _dict(self, data: dict[str, Any], path: Path) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        for key, item in data.items():
            name = key if self._path else self._scalar(key)
            while name != key and (name in changed or name in data):
                name += "*"  # another key was erased here
            changed[name] = self._data(item, (*path, key))
        return changed

    def _scalar(self, text: str) -> str:
        if _folded(text.strip()) == _folded(self.value):
            return ERASED
        return text if self._number is not None else self.without(text)

    def _texts(self, data: Any) -> Any:
        if isinstance(data, dict):
            return {key: self._texts(item) for key, item in data.items()}
        if isinstance(data, list):
            return [self._texts(item) for item in data]
        is_text = isinstance(data, str) and not data.startswith(_IS_NUMBER)
        return self.without(data) if is_text else data

    def _selection(self, selection: Any) -> Any:
        """The values of its terms; the number of attempts is nobody's. A search has a
        selection for each table."""
        if not isinstance(selection, dict):
            return self._data(selection, ())
        if "terms" not in selection:
            return {name: self._selection(one) for name, one in selection.items()}
        terms = []
        for name, operator, value, path in selection["terms"]:
            is_text = isinstance(value, str) and not value.startswith(_IS_NUMBER)
            if path or is_text or isinstance(value, list):
                value = self._data(value, tuple(path or [name]))
            terms.append([name, operator, value, path])
        return {**selection, "terms": terms}

    def _is_meant(self, path: Path) -> bool:
        """True if values at this path are; the key may be the end of it."""
        return path[len(path) - len(self._path) :] == self._path

    def _is_number(self, text: str) -> bool:
        return self._number is not None and Decimal(text) == self._number

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        before, after = self._edges()
        return re.compile(before + pattern_of(self.value) + after, re.IGNORECASE)

    def _edges(self) -> tuple[str, str]:
        """The conditions of what stands before and after it."""
        is_address = re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", self.value)
        if is_address:  # nor is it the end of a longer address
            return rf"(?:(?<![\w.+-])|{_ESCAPED})", r"(?![^\W_]|-\w|\.\w)"
        before = rf"(?:(?<![^\W_])|{_ESCAPED})" if self.value[0].isalnum() else ""
        after = r"(?![^\W_])" if self.value[-1].isalnum() else ""
        return before, after


def _folded(text: str) -> str:
    return normalize("NFC", text).casefold()


def _changed(content: str, change: Callable[[Any], Any]) -> str:
    """JSON with a change. Numbers stay as they are written, and what is nested too
    deeply to be read is erased as a whole."""
    try:
        data = json.loads(
            content, parse_int=_as_marked_text, parse_float=_as_marked_text
        )
        changed = change(data)
        if changed == data:
            return content
        written = json.dumps(changed)
    except RecursionError:
        return json.dumps(ERASED)
    return _NUMBER_TEXT.sub(r"\1", written)


def _as_marked_text(number: str) -> str:
    return _IS_NUMBER + number


def problem_of(value: str, key: str = "") -> str:
    """Why nobody can look for this; empty if somebody can."""
    if not value or "\0" in value or "\0" in key:
        return "The value is empty, or PostgreSQL cannot hold it."
    if len(value) > LONGEST or len(key) > LONGEST_KEY:
        return f"The value may have {LONGEST} characters, its key {LONGEST_KEY}."
    if not key and len(value) < SHORTEST:
        return (
            f"A value of fewer than {SHORTEST} characters is a part of too many texts: "
            "name the key that it stands under."
        )
    return ""
