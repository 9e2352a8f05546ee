"""Addresses with fields in braces, such as ``https://tracker.example/browse/{id}``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final
from urllib.parse import quote, urlsplit

# Of an address that takes a new issue.
REPORT_FIELDS: Final = (
    "title",
    "body",
    "fingerprint",
    "job_type",
    "url",
    "count",
    "first",
    "last",
)
ISSUE_FIELDS: Final = ("id",)

_FIELD: Final = re.compile(r"\{(\w+)\}")
_SCHEMES: Final = ("http", "https")
_HARMFUL: Final = re.compile(r"[\s\x00-\x1f\x7f<>\"'`\\]")


def problem(template: str, known: Collection[str], needed: str = "") -> str | None:
    """The reason why this template cannot be used, in words that follow its name."""
    fields = _FIELD.findall(template)
    unknown = [name for name in fields if name not in known]
    if unknown:
        return f"has the field {unknown[0]!r}; the fields are {', '.join(known)}"
    if set("{}") & set(_FIELD.sub("", template)):
        return f"has a brace that belongs to no field: {template!r}"
    if _HARMFUL.search(template) or not _is_web_address(template):
        return f"must be an address with http:// or https://, not {template!r}"
    if needed and needed not in fields:
        return f"must have the field {{{needed}}}, not {template!r}"
    return None


def filled(template: str, values: Mapping[str, str]) -> str:
    """The address with each value percent-encoded in the place of its field."""
    return _FIELD.sub(lambda field: _encoded(values[field[1]]), template)


def _is_web_address(template: str) -> bool:
    """True if scheme and host are there, and fixed."""
    try:
        parts = urlsplit(template)
    except ValueError:  # a bracket that begins no IPv6 address
        return False
    return parts.scheme in _SCHEMES and bool(parts.hostname) and "{" not in parts.netloc


def _encoded(value: str) -> str:
    return quote(value, safe="", errors="replace")
