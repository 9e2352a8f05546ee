"""Secrets taken out of what is stored, shown or logged.

By key, for data and results: the usual names of secrets, and the ``sensitive`` ones of
the job type. By value, for messages and tracebacks: what looks like a credential.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

MASK: Final = "••••"
SHORTEST_SECRET: Final = 4  # shorter values would mask half of every text

_KEYS = re.compile(
    r"password|passwd|secret|token|api[-_]?key|authorization|cookie|session|card|cvv"
    r"|iban|ssn",
    re.IGNORECASE,
)
_VALUES: Final = (
    re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
    re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"),  # a JSON web token
    re.compile(r"(?<=\bBearer )[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(?<=://)[^\s/:@]+:[^\s/@]+(?=@)"),  # user:password in a URL
    re.compile(r"(?<=password=)[^\s&;,'\"]+", re.IGNORECASE),
)
_CARD = re.compile(r"\b\d(?:[ -]?\d){12,18}\b")


def mask_data(value: Any, sensitive: Iterable[str] = ()) -> Any:
    """The same JSON value with ``MASK`` for what is kept under a secret's key."""
    return _mask(value, frozenset(name.lower() for name in sensitive))


def mask_text(text: str, secrets: Iterable[str] = ()) -> str:
    """The same text with ``MASK`` for ``secrets`` and whatever looks like one."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for pattern in _VALUES:
        text = pattern.sub(MASK, text)
    return _CARD.sub(_mask_card, text)


def secrets_in(value: Any, sensitive: Iterable[str]) -> set[str]:
    """The texts kept under ``sensitive`` keys, to be masked wherever they turn up."""
    found: set[str] = set()
    names = frozenset(name.lower() for name in sensitive)
    if names:
        _collect(value, names, found, secret=False)
    return found


def _mask(value: Any, sensitive: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK
            if key.lower() in sensitive or _KEYS.search(key)
            else _mask(item, sensitive)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask(item, sensitive) for item in value]
    return value


def _collect(
    value: Any, sensitive: frozenset[str], found: set[str], *, secret: bool
) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            inside = secret or key.lower() in sensitive
            _collect(item, sensitive, found, secret=inside)
    elif isinstance(value, list):
        for item in value:
            _collect(item, sensitive, found, secret=secret)
    elif secret and not isinstance(value, bool | None):
        text = str(value)
        if len(text) >= SHORTEST_SECRET:
            found.add(text)


def _mask_card(match: re.Match[str]) -> str:
    """Numbers that pass the check of card numbers (ISO/IEC 7812-1, Luhn)."""
    digits = [int(c) for c in match.group() if c.isdigit()]
    doubled = (d * 2 - 9 * (d > 4) for d in digits[-2::-2])
    total = sum(digits[-1::-2]) + sum(doubled)
    return MASK if total % 10 == 0 else match.group()
